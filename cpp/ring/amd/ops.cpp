// The code of a table's entry is one 4-byte slot a symbol; its name is the function of the embedded images.
#include "ring/amd/ops.h"

#include <algorithm>

#include "base/error.h"
#include "base/kv_type.h"
#include "base/name_list.h"
#include "ir/op_rules.h"
#include "kernel/slots.h"
#include "kernels/rdna/dtypes.h"
#include "kernels/rdna/op_args.h"

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
constexpr std::uint32_t kLinearTile = 8;  // rows of W a wave (kernels/rdna/linear.h)
constexpr std::uint32_t kAttendThreads = 128;

// Candidates twice, their logits, and an order of them (kernels/rdna/sample.hip).
std::uint64_t sample_scratch(std::span<const std::uint32_t> symbols, std::uint64_t rows) {
  return rows * symbols[0] * 24;
}

std::vector<DType> key_types(AmdKeys keys) {
  std::vector<DType> types;
  switch (keys) {
    case AmdKeys::kNone: return {DType::kF32};
    case AmdKeys::kKv: return {DType::kF32, DType::kF16, DType::kQ8_0, DType::kI16};
    case AmdKeys::kWeights: return weight_types();
  }
  return types;
}

std::string function_of(const AmdOp& op, DType key) {
  std::string name(to_string(op.op));
  if (op.keys == AmdKeys::kWeights) name += "_" + std::string(to_string(key));
  if (op.keys == AmdKeys::kKv && find_kv_cell(key)->layout == KvLayout::kIntegers) name += "_integer";
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return name;
}

}  // namespace

std::span<const AmdOp> amd_ops() {
  static const std::vector<AmdOp> ops{
      {Op::EMBED, {"dim:v", "dim:d"}, {{"n"}, {}}, kRow, AmdKeys::kWeights},
      {Op::RMS_NORM, {"dim:d"}, {{"n"}, {}}, kWave},
      {Op::ROPE, {"dim:d", "dim:p"}, {{"n"}, {}}, kRow},
      {Op::FLASH_ATTN,
       {"dim:m", "dtype:kv_k", "pitch:kv_k", "pitch:kv_v", "attr:v_head_dim"},
       {{"n"}, {"n_heads"}},
       kAttendThreads,
       AmdKeys::kKv,
       nullptr,
       {4, 512}},
      {Op::FLASH_ATTN_BATCHED,
       {"dim:m", "dtype:kv_k", "pitch:kv_k", "pitch:kv_v", "attr:v_head_dim"},
       {{"n"}, {"n_heads"}},
       kAttendThreads,
       AmdKeys::kKv,
       nullptr,
       {4, 512}},
      {Op::LM_HEAD, {"dim:d", "dim:v", "dtype:x"}, {{"v", kLinearTile}, {"n"}}, kWave, AmdKeys::kWeights},
      {Op::ARGMAX, {"dim:v"}, {{"n"}, {}}, kWave},
      {Op::SAMPLE, {"dim:v"}, {{"n"}, {}}, kWave, AmdKeys::kNone, sample_scratch},
      {Op::KV_WRITE_BATCHED,
       {"dim:nk", "dim:nv", "dim:m", "dtype:kv_k", "pitch:kv_k", "pitch:kv_v"},
       {{"n"}, {}},
       kRow,
       AmdKeys::kKv},
      {Op::STREAM_OUT, {"dim:n", "dim:entries"}, {{}, {}}, kWave},
      {Op::LINEAR, {"dim:k", "dim:m", "dtype:x"}, {{"m", kLinearTile}, {"n"}}, kWave, AmdKeys::kWeights},
      {Op::QUANTIZE, {"dim:k", "dtype:y"}, {{"n"}, {}}, kRow},
      {Op::ADD, {"dim:d"}, {{"n"}, {}}, kRow},
      {Op::GLU, {"dim:f"}, {{"n"}, {}}, kRow},
      {Op::SCALE, {"dim:d"}, {{"n"}, {}}, kRow},
      {Op::SOFTCAP, {"dim:d"}, {{"n"}, {}}, kRow},
      {Op::SIGMOID_MUL, {"dim:d"}, {{"n"}, {}}, kRow},
      {Op::SLICE, {}, {{"n"}, {}}, kRow},
      {Op::GATHER_ROWS, {"dim:d", "dim:n"}, {{"r"}, {}}, kRow},
      {Op::COPY_ROWS, {"dim:w"}, {{"n"}, {}}, kRow},
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
    entry.file.workgroup_size[0] = op.threads;
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
    if (op.limit.most != 0 && kernel.symbols[op.limit.symbol] > op.limit.most)
      return fail(StatusCode::kUnavailable, "[amd] {} with {} = {}, its kernel goes to {}", file.name,
                  op.symbols[op.limit.symbol], kernel.symbols[op.limit.symbol], op.limit.most);
    return kernel;
  }
  return fail(StatusCode::kNotFound, "[amd] no kernel is named {}", file.name);
}

}  // namespace zinc_rt::ring
