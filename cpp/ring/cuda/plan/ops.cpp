// The tier's ops: their symbols and launches. Norms are in plan_norms.cpp, experts in plan_experts.cpp, attention in
// plan_attention.cpp and products in plan_linear.cpp.
#include <algorithm>

#include "base/kv_type.h"
#include "kernels/cuda/delta_net_args.h"
#include "kernels/cuda/logprobs_args.h"
#include "kernels/cuda/scan_args.h"
#include "ring/cuda/plan/op_symbols.h"
#include "ring/cuda/plan/ops.h"

namespace zinc_rt::ring {
namespace {

using gpu::Keys;
using ir::Op;
namespace symbol = cuda::symbol;

constexpr std::uint32_t kThreads = 256;

// Plans a kernel that has the op's name and handles each value of a row by itself. The op's first symbol is the row's
// width. A thread handles one value if there are few rows, else four.
void wide(Planner& p, const OpCall& c) {
  const std::uint32_t values = c.rows() <= 8 ? kThreads : 4 * kThreads;
  p.launch(gpu::kernel_name(c.op), gpu::kernel_name(c.op), c.rows(), ceil_div(c.numbers[0], values), 1, kThreads, 0,
           p.args_of_op(c));
}
// Plans a kernel with one workgroup per row.
template <std::uint32_t kBlock>
void row(Planner& p, const OpCall& c) {
  p.launch(gpu::kernel_name(c.op), gpu::kernel_name(c.op), c.rows(), 1, 1, kBlock, 0, p.args_of_op(c));
}
// Plans a kernel with one thread per row.
void thread(Planner& p, const OpCall& c) {
  p.launch(gpu::kernel_name(c.op), gpu::kernel_name(c.op), ceil_div(c.rows(), 128), 1, 1, 128, 0, p.args_of_op(c));
}
void stream_out(Planner& p, const OpCall& c) {
  plan_stream_out(p, c);
}

void embed(Planner& p, const OpCall& c) {
  const auto s = c.symbols<cuda_symbol::Embed>();
  p.launch("linear." + std::string(to_string(type_of(s.dtype_table))), "embed", c.rows(), ceil_div(s.d, 1024), 1,
           kThreads, 0,
           p.args<symbol::Embed>(c, {.rows = c.rows_symbol, .v = s.v, .d = s.d, .s = s.s, .fields = s.fields}));
}

void quantize(Planner& p, const OpCall& c) {
  p.launch("quantize", "quantize", c.rows(), ceil_div(c.symbols<op_symbol::Quantize>().k, 2048), 1, kThreads, 0,
           p.args_of_op(c));
}

// Returns the bytes of shared memory that workgroups request only so that they are spread over all multiprocessors. The
// workgroups of a short launch begin while the previous products end, and would otherwise all go to the multiprocessors
// that become free first.
std::uint32_t spreading_shared(const Planner& p, std::uint32_t workgroups) {
  // kMostEach: workgroups per multiprocessor; kReserved: bytes that the driver takes from each workgroup.
  constexpr std::uint32_t kMostEach = 8, kReserved = 1536;
  const std::uint32_t each = ceil_div(workgroups, p.device().multiprocessors);
  return each > kMostEach ? 0 : std::max(p.most_shared() / each, kReserved) - kReserved;
}

void linear(Planner& p, const OpCall& c) {
  plan_linear_op(p, c);
}
void matmul_q4k(Planner& p, const OpCall& c) {
  plan_linear(p, c, gpu::matmul_q4k_products(c));
}
void qkv(Planner& p, const OpCall& c) {
  plan_qkv(p, c);
}
void gate_up(Planner& p, const OpCall& c) {
  plan_gate_up(p, c);
}
void experts(Planner& p, const OpCall& c) {
  plan_experts_op(p, c);
}
void gate_topk(Planner& p, const OpCall& c) {
  plan_choices(p, {&c, 1});
}

void moe_add_bias(Planner& p, const OpCall& c) {
  const auto s = c.symbols<op_symbol::MoeAddBias>();
  p.launch("moe_add_bias", "moe_add_bias", c.rows(), ceil_div(std::uint64_t{s.k} * s.f, 1024), 1, kThreads, 0,
           p.args_of_op(c));
}

KvLayout layout_of(DType keys) {
  return find_kv_cell(keys)->layout;
}

void kv_write(Planner& p, const OpCall& c) {
  const bool is_rotated = layout_of(type_of(c.symbols<op_symbol::KvWrite>().dtype_kv_k)) == KvLayout::kRotated;
  p.launch("kv_write_batched", is_rotated ? "kv_write_rotated" : "kv_write_batched", c.rows(), 1, 1, kThreads, 0,
           p.args_of_op(c));
}

void rope_kv_write(Planner& p, const OpCall& c) {
  const auto push = c.constants<push::RmsNormFusedRopeKvWrite>();
  const auto s = c.symbols<op_symbol::RopeKvWrite>();
  const std::uint32_t q_heads = s.nq / push.head_dim, k_heads = s.nk / push.head_dim;
  auto args = p.args_of_op(c);
  // If the cells of a head are contiguous, one warp writes the whole head.
  constexpr std::uint32_t kMostOfWarp = 256;
  const KvLayout layout = layout_of(type_of(s.dtype_kv_k));
  const std::uint32_t v_part = layout == KvLayout::kTokens ? kMostOfWarp : s.nv / k_heads;
  if (push.head_dim <= kMostOfWarp && v_part <= kMostOfWarp) {
    args.symbols[symbol::RopeKvWrite::v_part] = v_part;
    p.launch("kv_write_batched", layout == KvLayout::kRotated ? "rope_kv_write_rotated" : "rope_kv_write_heads",
             c.rows(), ceil_div(q_heads + k_heads + ceil_div(s.nv, v_part), 4), 1, 128, 0, args);
    return;
  }
  args.symbols[symbol::RopeKvWrite::q_parts] = q_heads;
  args.symbols[symbol::RopeKvWrite::k_parts] = k_heads;
  p.launch("kv_write_batched", "rms_norm_fused_rope_kv_write", c.rows(), q_heads + k_heads + 1, 1, 128,
           std::uint64_t{push.head_dim} * 4 + rms_bytes(push.head_dim, push.head_dim), args);
}

void attention(Planner& p, const OpCall& c) {
  plan_attention(p, c);
}

// The first axis of the grid is channels. The second axis is tokens, because a slot's tokens may begin at any of them.
void conv1d(Planner& p, const OpCall& c) {
  const auto s = c.symbols<op_symbol::SsmConv1d>();
  p.launch("ssm_conv1d", "ssm_conv1d", ceil_div(s.c, 256), c.count(s.n), 1, 256, 0,
           p.args<symbol::SsmConv1d>(c, {.rows = s.n, .c = s.c, .k = s.k}));
}
// The grid is (tiles of columns, tokens), as in conv1d().
void pool_mean(Planner& p, const OpCall& c) {
  const auto s = c.symbols<op_symbol::PoolMean>();
  p.launch("pool_mean", "pool_mean", ceil_div(s.d, 256), c.count(s.n), 1, 256, 0,
           p.args<symbol::PoolMean>(c, {.rows = s.n, .d = s.d}));
}
void delta_net(Planner& p, const OpCall& c) {
  const auto push = c.constants<push::SsmDeltaNet>();
  const auto s = c.symbols<cuda_symbol::SsmDeltaNet>();
  const bool fits_registers = push.k_dim <= cuda::kDeltaRegisters;
  const std::uint64_t floats =
      fits_registers ? 2 * cuda::kDeltaRegisters : std::uint64_t{push.k_dim} * (2 + cuda::kDeltaColumns);
  p.launch("ssm_delta_net", fits_registers ? "ssm_delta_net" : "ssm_delta_net_shared", push.n_v_heads, c.count(s.n),
           ceil_div(push.v_dim, cuda::kDeltaColumns), cuda::kDeltaColumns, floats * 4,
           p.args<symbol::SsmDeltaNet>(c, {.rows = s.n, .k = s.k}));
}

// The second axis of the grid is runs of tokens, of which a step has at most one per slot.
void scan(Planner& p, const OpCall& c) {
  const auto push = c.constants<push::SsmScan>();
  const auto s = c.symbols<cuda_symbol::SsmScan>();
  const std::uint32_t warps = ceil_div(push.state_dim, cuda::kScanRows);
  p.launch("ssm_scan", "ssm_scan", push.n_heads * ceil_div(push.head_dim, cuda::kScanColumns),
           std::min(c.count(s.n), s.slots), 1, 32 * warps, cuda::scan_shared_bytes(warps),
           p.args<symbol::SsmScan>(c, {.rows = s.n, .k = s.k}));
}

void sample(Planner& p, const OpCall& c) {
  constexpr std::uint32_t kParts = 32;  // parts of a row, one workgroup each (sample.cu)
  const std::uint64_t v = c.symbols<op_symbol::Logits>().v;
  p.scratch(c.rows() * std::max(v * 6, std::uint64_t{2} * kParts) * 4);
  p.launch("sample", "sample_parts", c.rows(), kParts, 1, kThreads, spreading_shared(p, c.rows() * kParts),
           p.args_of_op(c));
  p.launch("sample", "sample", c.rows(), 1, 1, 1024, 0, p.args_of_op(c));
}
void logprobs(Planner& p, const OpCall& c) {
  p.scratch(std::uint64_t{c.rows()} * c.symbols<op_symbol::Logits>().v * sizeof(std::uint64_t));
  p.launch("logprobs", "logprobs", c.rows(), 1, 1, cuda::kLogprobThreads, cuda::kLogprobShared, p.args_of_op(c));
}
void slice(Planner& p, const OpCall& c) {
  const auto push = c.constants<push::Slice>();
  p.launch("slice", "slice", c.rows(), ceil_div(std::uint64_t{push.groups} * push.width, 1024), 1, kThreads, 0,
           p.args_of_op(c));
}
void concat(Planner& p, const OpCall& c) {
  const auto push = c.constants<push::Concat>();
  p.launch("concat", "concat", c.rows(), ceil_div(std::uint64_t{push.groups} * push.width, 1024), 1, kThreads, 0,
           p.args_of_op(c));
}
void copy_rows(Planner& p, const OpCall& c) {
  p.launch("copy_rows", "copy_rows", c.rows(), std::min(ceil_div(c.symbols<op_symbol::CopyRows>().w, 4096), 64u), 1,
           kThreads, 0, p.args_of_op(c));
}

}  // namespace

void plan_linear_op(Planner& p, const OpCall& c, const LinearWith& with) {
  plan_linear(p, c, gpu::linear_products(c), with);
}

void plan_stream_out(Planner& p, const OpCall& c, const OpCall* store) {
  const auto s = c.symbols<op_symbol::StreamOut>();
  const auto table =
      store != nullptr ? store->symbols<cuda_symbol::RequestState>() : cuda_symbol::RequestState::Of<std::uint32_t>{};
  auto args = p.args<symbol::StreamOut>(c, {.rows = s.n, .entries = s.entries, .s = table.s, .fields = table.fields});
  if (store != nullptr) {
    args.buffers[cuda::binding::StreamOut::slots] = store->buffers[operand::StoreRequestState::slots];
    args.set_constants(store->constants<push::RequestState>());
  }
  p.launch(gpu::kernel_name(c.op), gpu::kernel_name(c.op), 1, 1, 1, 128, 0, args);
}

DigitRows digits_before(Planner& p, const OpCall& products, std::uint32_t k, const std::vector<Matrix>& matrices) {
  return p.is_fast() ? DigitRows{} : plan_digits(p, products, k, matrices);
}

void plan_glu_quantize(Planner& p, const OpCall& c, const gpu::Glu<Place>& glu, const gpu::Quantized<Place>& rows,
                       const DigitRows& digits) {
  auto args = p.args<symbol::GluQuantize>(c, {.rows = c.rows_symbol,
                                              .k = rows.k,
                                              .dtype_y = static_cast<std::uint32_t>(rows.type),
                                              .digit_columns = digits.columns});
  args.set_buffers<cuda::binding::GluQuantize>(
      {.gate = glu.gate, .up = glu.up, .y = glu.y, .quantized = rows.y, .digits = digits.tiles});
  args.set_constants(push::Glu{glu.act});
  const std::uint32_t pieces = ceil_div(rows.k, 1024);
  p.launch("quantize", "glu_quantize", c.rows(), pieces, 1, 128,
           c.rows() > 1 ? spreading_shared(p, c.rows() * pieces) : 0, args);
}

std::span<const CudaOp> cuda_ops() {
  using cuda_symbol::SsmScan;
  using gpu::symbols_of;
  static const std::vector<gpu::OpRow::Limit> of_scan{
      {SsmScan::attr_state_dim, cuda::kMostScanWarps * cuda::kScanRows}};
  // Each of a warp's 32 lanes remembers in 64 bits which of its experts are chosen (kernels/cuda/moe_gate_topk.cu).
  constexpr std::uint32_t kMostExperts = 32 * 64;
  static const std::vector<CudaOp> ops{
      {{Op::EMBED, symbols_of<cuda_symbol::Embed>(), {{"n"}}, Keys::kWeights}, embed},
      {{Op::RMS_NORM, symbols_of<op_symbol::Norm>(), {{"n"}}, Keys::kNone}, plan_norm},
      {{Op::RMS_NORM_FUSED_QKV, symbols_of<op_symbol::Qkv>(), {{"n"}}, Keys::kWeights}, qkv},
      {{Op::RMS_NORM_FUSED_MLP_GATE_UP, symbols_of<op_symbol::GateUp>(), {{"n"}}, Keys::kWeights}, gate_up},
      {{Op::ROPE, symbols_of<op_symbol::Rope>(), {{"n"}}, Keys::kNone}, row<kThreads>},
      {{Op::RMS_NORM_FUSED_ROPE_KV_WRITE, symbols_of<op_symbol::RopeKvWrite>(), {{"n"}}, Keys::kKv}, rope_kv_write},
      {{Op::FLASH_ATTN, symbols_of<op_symbol::FlashAttn>(), {{"n"}}, Keys::kKv}, attention},
      {{Op::FLASH_ATTN_BATCHED, symbols_of<op_symbol::FlashAttn>(), {{"n"}}, Keys::kKv}, attention},
      {{Op::MOE_GATE_TOPK,
        symbols_of<op_symbol::GateTopk>(),
        {{"n"}},
        Keys::kWeights,
        0,
        {{op_symbol::GateTopk::e, kMostExperts}}},
       gate_topk},
      {{Op::MOE_GATE_UP, symbols_of<op_symbol::MoeGateUp>(), {{"n"}}, Keys::kWeights}, experts},
      {{Op::MOE_SWIGLU, symbols_of<op_symbol::Glu>(), {{"n"}}, Keys::kNone}, wide},
      {{Op::MOE_DOWN_ACC, symbols_of<op_symbol::MoeDownAcc>(), {{"n"}}, Keys::kWeights}, plan_moe_down_acc},
      {{Op::SHARED_EXPERT, symbols_of<op_symbol::SharedExpert>(), {{"n"}}, Keys::kWeights}, plan_shared_expert},
      {{Op::SSM_CONV1D, symbols_of<op_symbol::SsmConv1d>(), {}, Keys::kNone}, conv1d},
      {{Op::SSM_DELTA_NET, symbols_of<cuda_symbol::SsmDeltaNet>(), {}, Keys::kNone}, delta_net},
      {{Op::SSM_GATED_NORM, symbols_of<op_symbol::GatedNorm>(), {{"n"}}, Keys::kNone}, plan_gated_norm},
      {{Op::RESIDUAL_RMS_NORM, symbols_of<op_symbol::Norm>(), {{"n"}}, Keys::kNone}, plan_norm},
      {{Op::LM_HEAD, symbols_of<op_symbol::LmHead>(), {{"n"}}, Keys::kWeights}, linear},
      {{Op::ARGMAX, symbols_of<op_symbol::Logits>(), {{"n"}}, Keys::kNone}, row<1024>},
      {{Op::SAMPLE, symbols_of<op_symbol::Logits>(), {{"n"}}, Keys::kNone}, sample},
      {{Op::KV_WRITE_BATCHED, symbols_of<op_symbol::KvWrite>(), {{"n"}}, Keys::kKv}, kv_write},
      {{Op::MATMUL_WMMA_Q4K, symbols_of<op_symbol::MatmulQ4K>(), {{"n"}}, Keys::kQ4K}, matmul_q4k},
      {{Op::STREAM_OUT, symbols_of<op_symbol::StreamOut>(), {}, Keys::kNone}, stream_out},
      {{Op::LOAD_REQUEST_STATE, symbols_of<cuda_symbol::RequestState>(), {{"n"}}, Keys::kNone}, thread},
      {{Op::STORE_REQUEST_STATE, symbols_of<cuda_symbol::RequestState>(), {{"n"}}, Keys::kNone}, thread},
      {{Op::VERIFY_K, symbols_of<op_symbol::VerifyK>(), {{"b"}}, Keys::kNone}, row<1024>},
      {{Op::LINEAR, symbols_of<op_symbol::Linear>(), {{"n"}}, Keys::kWeights}, linear},
      {{Op::QUANTIZE, symbols_of<op_symbol::Quantize>(), {{"n"}}, Keys::kNone}, quantize},
      {{Op::ADD, symbols_of<op_symbol::Row>(), {{"n"}}, Keys::kNone}, wide},
      {{Op::GLU, symbols_of<op_symbol::Glu>(), {{"n"}}, Keys::kNone}, wide},
      {{Op::SCALE, symbols_of<op_symbol::Row>(), {{"n"}}, Keys::kNone}, wide},
      {{Op::SOFTCAP, symbols_of<op_symbol::Row>(), {{"n"}}, Keys::kNone}, wide},
      {{Op::SIGMOID_MUL, symbols_of<op_symbol::Row>(), {{"n"}}, Keys::kNone}, wide},
      {{Op::GATHER_ROWS, symbols_of<op_symbol::GatherRows>(), {{"r"}}, Keys::kNone}, wide},
      {{Op::SLICE, {}, {{"n"}}, Keys::kNone}, slice},
      {{Op::CONCAT, {}, {{"n"}}, Keys::kNone}, concat},
      {{Op::MOE_LINEAR, symbols_of<op_symbol::MoeLinear>(), {{"n"}}, Keys::kWeights}, experts},
      {{Op::MOE_SUM, symbols_of<op_symbol::MoeSum>(), {{"n"}}, Keys::kNone}, plan_moe_sum},
      {{Op::MOE_ADD_BIAS, symbols_of<op_symbol::MoeAddBias>(), {{"n"}}, Keys::kNone}, moe_add_bias},
      {{Op::COPY_ROWS, symbols_of<op_symbol::CopyRows>(), {{"n"}}, Keys::kNone}, copy_rows},
      {{Op::POOL_MEAN, symbols_of<op_symbol::PoolMean>(), {}, Keys::kNone}, pool_mean},
      {{Op::LOGPROBS, symbols_of<op_symbol::Logits>(), {{"n"}}, Keys::kNone}, logprobs},
      {{Op::LAYER_NORM, symbols_of<op_symbol::Norm>(), {{"n"}}, Keys::kNone}, plan_layer_norm},
      {{Op::GELU, symbols_of<op_symbol::Glu>(), {{"n"}}, Keys::kNone}, wide},
      {{Op::MUL, symbols_of<op_symbol::Row>(), {{"n"}}, Keys::kNone}, wide},
      {{Op::RELU2, symbols_of<op_symbol::Glu>(), {{"n"}}, Keys::kNone}, wide},
      {{Op::SSM_SCAN, symbols_of<SsmScan>(), {}, Keys::kNone, 0, of_scan}, scan},
  };
  return ops;
}

}  // namespace zinc_rt::ring
