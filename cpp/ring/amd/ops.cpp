// The table of the AMD tiers' ops. A .zrt file of these tiers has the op's name. If the function in the images depends
// on the key's type, the type is appended.
#include "ring/amd/ops.h"

#include "base/kv_type.h"
#include "kernels/rdna/dtypes.h"
#include "ring/amd/plan.h"

namespace zinc_rt::ring {
namespace {

using gpu::Keys;
using ir::Op;

template <rdna::Type kNumber, DType kType>
constexpr bool kIsSame = static_cast<int>(kNumber) == static_cast<int>(kType);
static_assert(kIsSame<rdna::kF32, DType::kF32> && kIsSame<rdna::kF16, DType::kF16> &&
                  kIsSame<rdna::kQ8_0, DType::kQ8_0> && kIsSame<rdna::kQ8A32, DType::kQ8A32> &&
                  kIsSame<rdna::kQ8A256, DType::kQ8A256> && kIsSame<rdna::kQ16A256, DType::kQ16A256>,
              "kernels/rdna/dtypes.h");

// Checks that a kernel finds an op's symbols at the positions that the op's row gives them.
template <class OfKernel, class OfOp>
constexpr bool kBeginsWith = gpu::begins_with(OfKernel::kText, OfOp::kText);
static_assert(kBeginsWith<rdna::symbol::Attention, amd_symbol::FlashAttn> &&
              kBeginsWith<rdna::symbol::AttentionTiles, amd_symbol::FlashAttn> &&
              kBeginsWith<rdna::symbol::RopeKvWrite, op_symbol::RopeKvWrite> &&
              kBeginsWith<rdna::symbol::KvWrite, op_symbol::KvWrite> &&
              kBeginsWith<rdna::symbol::Quantize, op_symbol::Quantize> &&
              kBeginsWith<rdna::symbol::Embed, amd_symbol::Embed> && kBeginsWith<rdna::symbol::Rope, op_symbol::Rope> &&
              kBeginsWith<op_symbol::GateTopk, rdna::symbol::GateTopk> &&
              kBeginsWith<op_symbol::SsmConv1d, rdna::symbol::SsmConv1d> &&
              kBeginsWith<amd_symbol::SsmDeltaNet, rdna::symbol::SsmDeltaNet> &&
              kBeginsWith<rdna::symbol::PoolMean, op_symbol::PoolMean> &&
              kBeginsWith<rdna::symbol::GatherRows, op_symbol::GatherRows> &&
              kBeginsWith<rdna::symbol::MoeAddBias, op_symbol::MoeAddBias> &&
              kBeginsWith<rdna::symbol::StreamOut, op_symbol::StreamOut> &&
              kBeginsWith<rdna::symbol::RequestState, amd_symbol::RequestState> &&
              kBeginsWith<rdna::symbol::VerifyK, op_symbol::VerifyK>);
// Plans read the symbols by the names in ring/gpu/symbols.h, so these must come first.
static_assert(kBeginsWith<amd_symbol::FlashAttn, op_symbol::FlashAttn>);

constexpr std::uint32_t kWave = 32, kRow = 256;

// Plans an op that has a kernel of its own.
void own(AmdPlanner& p, const AmdCall& c) {
  p.launch(c.kernel->name, c.kernel->op->threads, c.groups[0], c.groups[1], c.groups[2], p.args(c));
}

// Plans SAMPLE. The scratch memory holds two lists of candidates, their logits, and their order
// (kernels/rdna/sample.hip).
void sample(AmdPlanner& p, const AmdCall& c) {
  auto args = p.args(c);
  args.scratch = p.scratch(std::uint64_t{c.rows()} * c.symbols<op_symbol::Logits>().v * 24);
  p.launch("sample", kRow, c.rows(), 1, 1, args);
}

std::string name_of(const gpu::OpRow& row, DType key) {
  std::string name = gpu::kernel_name(row.op);
  if (row.keys == Keys::kWeights || row.keys == Keys::kQ4K) name += "_" + std::string(to_string(key));
  if (row.keys == Keys::kKv && find_kv_cell(key)->layout == KvLayout::kIntegers) name += "_integer";
  return name;
}

constexpr DType kCells[] = {DType::kF32, DType::kF16, DType::kQ8_0, DType::kI16};
// The types of weights that the kernels read. Lowering refuses others by name.
constexpr DType kWeights[] = {DType::kF32,  DType::kF16,    DType::kBF16,   DType::kQ4_0,  DType::kQ4_1,   DType::kQ5_0,
                              DType::kQ5_1, DType::kQ8_0,   DType::kQ2_K,   DType::kQ3_K,  DType::kQ4_K,   DType::kQ5_K,
                              DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4, DType::kFixed16};
constexpr gpu::Kernels kKernels{"amd", kCells, kWeights, name_of};

}  // namespace

std::span<const AmdOp> amd_ops() {
  using gpu::symbols_of;
  static const std::vector<gpu::OpRow::Limit> of_heads{{amd_symbol::FlashAttn::attr_v_head_dim, rdna::kMostValues},
                                                       {amd_symbol::FlashAttn::attr_head_dim, rdna::kMostRotated}};
  using op_symbol::GatedNorm, op_symbol::SsmConv1d;
  static const std::vector<gpu::OpRow::Limit> of_conv1d{{SsmConv1d::biases, 0, "with a bias"},
                                                        {SsmConv1d::attr_act, push::kConvSilu, "without silu"}},
      of_gated_norm{{GatedNorm::w_groups, 1, "with weights of each group"},
                    {GatedNorm::attr_gate_first, 0, "with the gate before the norm"}};
  static const std::vector<AmdOp> ops{
      {{Op::EMBED, symbols_of<amd_symbol::Embed>(), {{"n"}}, Keys::kWeights, kRow}, own},
      {{Op::RMS_NORM, symbols_of<op_symbol::Norm>(), {{"n"}}, Keys::kNone}, plan_norm},
      {{Op::RMS_NORM_FUSED_QKV, symbols_of<op_symbol::Qkv>(), {{"n"}}, Keys::kWeights}, plan_qkv},
      {{Op::RMS_NORM_FUSED_MLP_GATE_UP, symbols_of<op_symbol::GateUp>(), {{"n"}}, Keys::kWeights}, plan_gate_up},
      {{Op::ROPE, symbols_of<op_symbol::Rope>(), {{"n"}}, Keys::kNone, kRow}, own},
      {{Op::RMS_NORM_FUSED_ROPE_KV_WRITE, symbols_of<op_symbol::RopeKvWrite>(), {{"n"}}, Keys::kKv},
       plan_rope_kv_write},
      {{Op::FLASH_ATTN, symbols_of<amd_symbol::FlashAttn>(), {{"n"}}, Keys::kKv, 0, of_heads}, plan_flash_attn},
      {{Op::FLASH_ATTN_BATCHED, symbols_of<amd_symbol::FlashAttn>(), {{"n"}}, Keys::kKv, 0, of_heads}, plan_flash_attn},
      {{Op::MOE_GATE_TOPK,
        symbols_of<op_symbol::GateTopk>(),
        {{"n"}},
        Keys::kWeights,
        0,
        {{op_symbol::GateTopk::e, rdna::kMostExperts}}},
       plan_gate_topk},
      {{Op::MOE_GATE_UP, symbols_of<op_symbol::MoeGateUp>(), {{"n"}}, Keys::kWeights}, plan_moe_gate_up},
      {{Op::MOE_SWIGLU, symbols_of<op_symbol::Glu>(), {{"n"}}, Keys::kNone, kRow}, own},
      {{Op::MOE_DOWN_ACC, symbols_of<op_symbol::MoeDownAcc>(), {{"n"}}, Keys::kWeights}, plan_moe_down_acc},
      {{Op::SHARED_EXPERT, symbols_of<op_symbol::SharedExpert>(), {{"n"}}, Keys::kWeights}, plan_shared_expert},
      {{Op::SSM_CONV1D, symbols_of<SsmConv1d>(), {{"c", kRow}, {"n"}}, Keys::kNone, kRow, of_conv1d}, own},
      {{Op::SSM_DELTA_NET,
        symbols_of<amd_symbol::SsmDeltaNet>(),
        {{"n_v_heads"}, {"v_dim", kWave}, {"n"}},
        Keys::kNone,
        kWave,
        {{amd_symbol::SsmDeltaNet::attr_k_dim, rdna::kMostStateRows}}},
       own},
      {{Op::SSM_GATED_NORM, symbols_of<GatedNorm>(), {{"n"}}, Keys::kNone, 0, of_gated_norm}, plan_norm},
      {{Op::RESIDUAL_RMS_NORM, symbols_of<op_symbol::Norm>(), {{"n"}}, Keys::kNone}, plan_norm},
      {{Op::LM_HEAD, symbols_of<op_symbol::LmHead>(), {{"n"}}, Keys::kWeights}, plan_linear_op},
      {{Op::ARGMAX, symbols_of<op_symbol::Logits>(), {{"n"}}, Keys::kNone, kWave}, own},
      {{Op::SAMPLE, symbols_of<op_symbol::Logits>(), {{"n"}}, Keys::kNone}, sample},
      {{Op::KV_WRITE_BATCHED, symbols_of<op_symbol::KvWrite>(), {{"n"}}, Keys::kKv, kRow}, own},
      {{Op::MATMUL_WMMA_Q4K, symbols_of<op_symbol::MatmulQ4K>(), {{"n"}}, Keys::kQ4K}, plan_matmul_q4k},
      {{Op::STREAM_OUT, symbols_of<op_symbol::StreamOut>(), {}, Keys::kNone, kWave}, own},
      {{Op::LOAD_REQUEST_STATE, symbols_of<amd_symbol::RequestState>(), {{"n", kWave}}, Keys::kNone, kWave}, own},
      {{Op::STORE_REQUEST_STATE, symbols_of<amd_symbol::RequestState>(), {{"n", kWave}}, Keys::kNone, kWave}, own},
      {{Op::VERIFY_K, symbols_of<op_symbol::VerifyK>(), {{"b"}}, Keys::kNone, kWave}, own},
      {{Op::LINEAR, symbols_of<op_symbol::Linear>(), {{"n"}}, Keys::kWeights}, plan_linear_op},
      {{Op::QUANTIZE, symbols_of<op_symbol::Quantize>(), {{"n"}}, Keys::kNone}, plan_quantize},
      {{Op::ADD, symbols_of<op_symbol::Row>(), {{"n"}}, Keys::kNone, kRow}, own},
      {{Op::GLU, symbols_of<op_symbol::Glu>(), {{"n"}}, Keys::kNone, kRow}, own},
      {{Op::SCALE, symbols_of<op_symbol::Row>(), {{"n"}}, Keys::kNone, kRow}, own},
      {{Op::SOFTCAP, symbols_of<op_symbol::Row>(), {{"n"}}, Keys::kNone, kRow}, own},
      {{Op::SIGMOID_MUL, symbols_of<op_symbol::Row>(), {{"n"}}, Keys::kNone, kRow}, own},
      {{Op::GATHER_ROWS, symbols_of<op_symbol::GatherRows>(), {{"r"}}, Keys::kNone, kRow}, own},
      {{Op::SLICE, {}, {{"n"}}, Keys::kNone, kRow}, own},
      {{Op::MOE_LINEAR, symbols_of<op_symbol::MoeLinear>(), {{"n"}}, Keys::kWeights}, plan_moe_linear},
      {{Op::MOE_SUM, symbols_of<op_symbol::MoeSum>(), {{"n"}}, Keys::kNone}, plan_moe_sum},
      {{Op::MOE_ADD_BIAS, symbols_of<op_symbol::MoeAddBias>(), {{"n"}}, Keys::kNone, kRow}, own},
      {{Op::COPY_ROWS, symbols_of<op_symbol::CopyRows>(), {{"n"}}, Keys::kNone, kRow}, own},
      {{Op::POOL_MEAN, symbols_of<op_symbol::PoolMean>(), {{"d", kRow}, {"n"}}, Keys::kNone, kRow}, own},
      {{Op::LAYER_NORM, symbols_of<op_symbol::Norm>(), {{"n"}}, Keys::kNone}, plan_layer_norm},
      {{Op::GELU, symbols_of<op_symbol::Glu>(), {{"n"}}, Keys::kNone, kRow}, own},
  };
  return ops;
}

kernel::KernelTable make_amd_table(kernel::Target target) {
  return gpu::make_table(kKernels, amd_ops(), target);
}

Result<AmdKernel> read_amd_kernel(std::span<const std::byte> zrt, kernel::Target target) {
  return gpu::read_kernel(kKernels, amd_ops(), zrt, target);
}

}  // namespace zinc_rt::ring
