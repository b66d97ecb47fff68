// The code of a table's entry is one 4-byte slot a symbol; its name is the op's, with its key's type.
#include "ring/amd/ops.h"

#include <algorithm>

#include "base/error.h"
#include "base/kv_type.h"
#include "base/name_list.h"
#include "ir/op_rules.h"
#include "kernel/slots.h"
#include "kernels/rdna/dtypes.h"
#include "ring/amd/plan.h"

namespace zinc_rt::ring {
namespace {

using ir::Op;

template <rdna::Type kNumber, DType kType>
constexpr bool kIsSame = static_cast<int>(kNumber) == static_cast<int>(kType);
static_assert(kIsSame<rdna::kF32, DType::kF32> && kIsSame<rdna::kF16, DType::kF16> &&
                  kIsSame<rdna::kQ8_0, DType::kQ8_0> && kIsSame<rdna::kQ8A32, DType::kQ8A32> &&
                  kIsSame<rdna::kQ8A256, DType::kQ8A256> && kIsSame<rdna::kQ16A256, DType::kQ16A256>,
              "kernels/rdna/dtypes.h");

constexpr std::uint32_t kWave = 32, kRow = 256;

// Candidates twice, their logits, and an order of them (kernels/rdna/sample.hip).
void sample(AmdPlanner& p, const AmdCall& c) {
  auto args = c.args;
  args.scratch = p.scratch(std::uint64_t{c.rows()} * c.dim(amd_symbols::kSample["dim:v"]) * 24);
  p.launch("sample", kRow, c.rows(), 1, 1, args);
}

void linear(AmdPlanner& p, const AmdCall& c) {
  plan_linear_op(p, c);
}

std::vector<DType> key_types(AmdKeys keys) {
  std::vector<DType> types;
  switch (keys) {
    case AmdKeys::kNone: return {DType::kF32};
    case AmdKeys::kKv: return {DType::kF32, DType::kF16, DType::kQ8_0, DType::kI16};
    case AmdKeys::kWeights: return weight_types();
    case AmdKeys::kQ4K: return {DType::kQ4_K};
  }
  return types;
}

std::string function_of(const AmdOp& op, DType key) {
  std::string name(to_string(op.op));
  if (op.keys == AmdKeys::kWeights || op.keys == AmdKeys::kQ4K) name += "_" + std::string(to_string(key));
  if (op.keys == AmdKeys::kKv && find_kv_cell(key)->layout == KvLayout::kIntegers) name += "_integer";
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return name;
}

}  // namespace

std::span<const AmdOp> amd_ops() {
  static const std::vector<AmdOp> ops{
      {Op::EMBED, {"dim:v", "dim:d"}, {{"n"}}, kRow, AmdKeys::kWeights},
      {Op::RMS_NORM, amd_symbols::kNorm, {{"n"}}, 0, AmdKeys::kNone, plan_norm},
      {Op::RMS_NORM_FUSED_QKV, amd_symbols::kQkv, {{"n"}}, 0, AmdKeys::kWeights, plan_qkv},
      {Op::RMS_NORM_FUSED_MLP_GATE_UP, amd_symbols::kGateUp, {{"n"}}, 0, AmdKeys::kWeights, plan_gate_up},
      {Op::ROPE, {"dim:d", "dim:p"}, {{"n"}}, kRow},
      {Op::RMS_NORM_FUSED_ROPE_KV_WRITE, amd_symbols::kRopeKvWrite, {{"n"}}, 0, AmdKeys::kKv, plan_rope_kv_write},
      {Op::FLASH_ATTN,
       amd_symbols::kFlashAttn,
       {{"n"}},
       0,
       AmdKeys::kKv,
       plan_flash_attn,
       {{amd_symbols::kFlashAttn["attr:v_head_dim"], rdna::kMostValues},
        {amd_symbols::kFlashAttn["attr:head_dim"], rdna::kMostRotated}}},
      {Op::FLASH_ATTN_BATCHED,
       amd_symbols::kFlashAttn,
       {{"n"}},
       0,
       AmdKeys::kKv,
       plan_flash_attn,
       {{amd_symbols::kFlashAttn["attr:v_head_dim"], rdna::kMostValues},
        {amd_symbols::kFlashAttn["attr:head_dim"], rdna::kMostRotated}}},
      {Op::MOE_GATE_TOPK,
       amd_symbols::kGateTopk,
       {{"n"}},
       0,
       AmdKeys::kWeights,
       plan_gate_topk,
       {{amd_symbols::kGateTopk["dim:e"], rdna::kMostExperts}}},
      {Op::MOE_GATE_UP, amd_symbols::kMoeGateUp, {{"n"}}, 0, AmdKeys::kWeights, plan_moe_gate_up},
      {Op::MOE_SWIGLU, {"dim:f"}, {{"n"}}, kRow},
      {Op::MOE_DOWN_ACC, amd_symbols::kMoeDownAcc, {{"n"}}, 0, AmdKeys::kWeights, plan_moe_down_acc},
      {Op::SHARED_EXPERT, amd_symbols::kSharedExpert, {{"n"}}, 0, AmdKeys::kWeights, plan_shared_expert},
      {Op::SSM_CONV1D, {"dim:c", "dim:n"}, {{"c", kRow}, {"n"}}, kRow},
      {Op::SSM_DELTA_NET,
       {"dim:n", "attr:k_dim"},
       {{"n_v_heads"}, {"v_dim", kWave}, {"n"}},
       kWave,
       AmdKeys::kNone,
       nullptr,
       {{1, rdna::kMostStateRows}}},
      {Op::SSM_GATED_NORM, amd_symbols::kNorm, {{"n"}}, 0, AmdKeys::kNone, plan_norm},
      {Op::RESIDUAL_RMS_NORM, amd_symbols::kNorm, {{"n"}}, 0, AmdKeys::kNone, plan_norm},
      {Op::LM_HEAD, amd_symbols::kLmHead, {{"n"}}, 0, AmdKeys::kWeights, linear},
      {Op::ARGMAX, {"dim:v"}, {{"n"}}, kWave},
      {Op::SAMPLE, amd_symbols::kSample, {{"n"}}, 0, AmdKeys::kNone, sample},
      {Op::KV_WRITE_BATCHED,
       {"dim:nk", "dim:nv", "dim:m", "dtype:kv_k", "pitch:kv_k", "pitch:kv_v"},
       {{"n"}},
       kRow,
       AmdKeys::kKv},
      {Op::MATMUL_WMMA_Q4K, amd_symbols::kMatmulQ4K, {{"n"}}, 0, AmdKeys::kQ4K, plan_matmul_q4k},
      {Op::STREAM_OUT, {"dim:n", "dim:entries"}, {}, kWave},
      {Op::LOAD_REQUEST_STATE, {"dim:s", "dim:fields", "dim:n"}, {{"n", kWave}}, kWave},
      {Op::STORE_REQUEST_STATE, {"dim:s", "dim:fields", "dim:n"}, {{"n", kWave}}, kWave},
      {Op::VERIFY_K, {"dim:k", "dim:v"}, {{"b"}}, kWave},
      {Op::LINEAR, amd_symbols::kProduct, {{"n"}}, 0, AmdKeys::kWeights, linear},
      {Op::QUANTIZE, amd_symbols::kQuantize, {{"n"}}, 0, AmdKeys::kNone, plan_quantize},
      {Op::ADD, {"dim:d"}, {{"n"}}, kRow},
      {Op::GLU, {"dim:f"}, {{"n"}}, kRow},
      {Op::SCALE, {"dim:d"}, {{"n"}}, kRow},
      {Op::SOFTCAP, {"dim:d"}, {{"n"}}, kRow},
      {Op::SIGMOID_MUL, {"dim:d"}, {{"n"}}, kRow},
      {Op::GATHER_ROWS, {"dim:d", "dim:n"}, {{"r"}}, kRow},
      {Op::SLICE, {}, {{"n"}}, kRow},
      {Op::MOE_LINEAR, amd_symbols::kMoeLinear, {{"n"}}, 0, AmdKeys::kWeights, plan_moe_linear},
      {Op::MOE_SUM, amd_symbols::kMoeSum, {{"n"}}, 0, AmdKeys::kNone, plan_moe_sum},
      {Op::COPY_ROWS, {"dim:w"}, {{"n"}}, kRow},
      {Op::POOL_MEAN, {"dim:d", "dim:n"}, {{"d", kRow}, {"n"}}, kRow},
      {Op::LAYER_NORM, {"dim:d"}, {{"n"}}, 0, AmdKeys::kNone, plan_layer_norm},
      {Op::GELU, {"dim:f"}, {{"n"}}, kRow},
  };
  return ops;
}

kernel::KernelTable make_amd_table(kernel::Target target) {
  kernel::KernelTable table(target);
  for (const AmdOp& op : amd_ops()) {
    kernel::KernelEntry entry;
    entry.file = kernel::with_slots(ir::rule(op.op), op.symbols);
    entry.file.target = target;
    entry.file.subgroup_size = kWave;
    entry.file.workgroup_size[0] = op.threads != 0 ? op.threads : kWave;
    for (std::size_t i = 0; i < std::size(op.grid); ++i)
      if (op.grid[i].variable != nullptr) entry.grid[i] = {op.grid[i].variable, op.grid[i].tile};
    for (const DType key : key_types(op.keys)) {
      entry.file.name = function_of(op, key);
      table.add(op.op, key, entry);
    }
  }
  return table;
}

Result<AmdKernel> read_amd_kernel(std::span<const std::byte> zrt, kernel::Target target) {
  ZRT_TRY(const auto file, kernel::read_zrt(zrt));
  ZRT_CHECK_OK(kernel::check_patched("amd", file, target));
  for (const AmdOp& op : amd_ops()) {
    const auto keys = key_types(op.keys);
    if (std::ranges::none_of(keys, [&](DType key) { return function_of(op, key) == file.name; })) continue;
    ZRT_TRY(auto slots, kernel::read_slots("amd", file, ir::rule(op.op), op.symbols));
    AmdKernel kernel{std::move(slots), &op, file.name};
    for (const AmdOp::Limit& limit : op.limits)
      if (kernel.symbols[limit.symbol] > limit.most)
        return fail(StatusCode::kUnavailable, "[amd] {} with {} = {}, its kernel goes to {}", file.name,
                    op.symbols[limit.symbol], kernel.symbols[limit.symbol], limit.most);
    return kernel;
  }
  return fail(StatusCode::kNotFound, "[amd] no kernel is named {}", file.name);
}

}  // namespace zinc_rt::ring
