// The ops of the tier: their symbols, and the launches that they are, but for norms (plan_norms.cpp), experts
// (plan_experts.cpp), attention (plan_attention.cpp) and products (plan_linear.cpp).
#include <algorithm>

#include "base/kv_type.h"
#include "kernels/common/push.h"
#include "ring/cuda/plan/ops.h"

namespace zinc_rt::ring {
namespace {

using ir::Op;
namespace symbol = cuda::symbol;

constexpr std::uint32_t kThreads = 256;

// Whether a kernel's symbols begin with the rows and the op's, as Planner::args_of_op lays them out: "dim:d" is named
// d, "dtype:kv_k" dtype_kv_k.
template <std::size_t N>
constexpr bool has_symbols_of_op(std::string_view names, const NameList<N>& symbols) {
  if (!names.starts_with("rows")) return false;
  names.remove_prefix(4);
  for (std::string_view symbol : symbols.names) {
    if (symbol.starts_with("dim:")) symbol.remove_prefix(4);
    if (names.size() < symbol.size() + 2) return false;
    names.remove_prefix(2);  // ", "
    for (const char c : symbol) {
      if (names.front() != (c == ':' ? '_' : c)) return false;
      names.remove_prefix(1);
    }
    if (!names.empty() && names.front() != ',') return false;
  }
  return true;
}
static_assert(has_symbols_of_op(symbol::Rope::kText, op_symbols::kRope));
static_assert(has_symbols_of_op(symbol::KvWrite::kText, op_symbols::kKvWriteBatched));
static_assert(has_symbols_of_op(symbol::RopeKvWrite::kText, op_symbols::kRmsNormFusedRopeKvWrite));
static_assert(has_symbols_of_op(symbol::Quantize::kText, op_symbols::kQuantize));
static_assert(has_symbols_of_op(symbol::RequestState::kText, op_symbols::kRequestState));
static_assert(has_symbols_of_op(symbol::VerifyK::kText, op_symbols::kVerifyK));
static_assert(has_symbols_of_op(symbol::GatherRows::kText, op_symbols::kGatherRows));

// A kernel named as the op, over rows as wide as the op's first symbol: a thread has one value where rows are few, else
// four.
void wide(Planner& p, const OpCall& c) {
  const std::uint32_t values = c.rows() <= 8 ? kThreads : 4 * kThreads;
  p.launch(kernel_name(c.op), kernel_name(c.op), c.rows(), ceil_div(c.symbols.front(), values), 1, kThreads, 0,
           p.args_of_op(c));
}
// A workgroup a row.
template <std::uint32_t kBlock>
void row(Planner& p, const OpCall& c) {
  p.launch(kernel_name(c.op), kernel_name(c.op), c.rows(), 1, 1, kBlock, 0, p.args_of_op(c));
}
// A thread a row.
void thread(Planner& p, const OpCall& c) {
  p.launch(kernel_name(c.op), kernel_name(c.op), ceil_div(c.rows(), 128), 1, 1, 128, 0, p.args_of_op(c));
}
void stream_out(Planner& p, const OpCall& c) {
  constexpr auto kSymbols = op_symbols::kStreamOut;
  const auto args = p.args<symbol::StreamOut>(
      c, {.rows = c.symbols[kSymbols["dim:n"]], .entries = c.symbols[kSymbols["dim:entries"]]});
  p.launch(kernel_name(c.op), kernel_name(c.op), 1, 1, 1, 128, 0, args);
}

void embed(Planner& p, const OpCall& c) {
  constexpr auto kSymbols = op_symbols::kEmbed;
  const std::uint32_t d = c.symbols[kSymbols["dim:d"]];
  p.launch("linear." + std::string(to_string(c.dtype(kSymbols["dtype:table"]))), "embed", c.rows(), ceil_div(d, 1024),
           1, kThreads, 0,
           p.args<symbol::Embed>(c, {.rows = c.rows_symbol, .v = c.symbols[kSymbols["dim:v"]], .d = d}));
}

void quantize(Planner& p, const OpCall& c) {
  p.launch("quantize", "quantize", c.rows(), ceil_div(c.symbols[op_symbols::kQuantize["dim:k"]], 2048), 1, kThreads, 0,
           p.args_of_op(c));
}

// Shared memory that workgroups ask for only to spread over all multiprocessors. Those of a short launch begin while
// the products before it end, and would otherwise all go to the first multiprocessors that become free.
std::uint32_t spreading_shared(const Planner& p, std::uint32_t workgroups) {
  constexpr std::uint32_t kMostEach = 8, kReserved = 1536;  // bytes of each workgroup that are not its own
  const std::uint32_t each = ceil_div(workgroups, p.device().multiprocessors);
  return each > kMostEach ? 0 : std::max(p.most_shared() / each, kReserved) - kReserved;
}

void linear(Planner& p, const OpCall& c) {
  plan_linear_op(p, c);
}
void matmul_q4k(Planner& p, const OpCall& c) {
  using Operand = operand::MatmulWmmaQ4K;
  const std::uint32_t m = c.symbols[op_symbols::kMatmulWmmaQ4K["dim:m"]];
  plan_linear(p, c, c.buffers[Operand::a], DType::kQ8A256, c.symbols[op_symbols::kMatmulWmmaQ4K["dim:k"]],
              {{c.buffers[Operand::b], DType::kQ4_K, m, {}, c.buffers[Operand::c], m}});
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

KvLayout layout_of(DType keys) {
  return find_kv_cell(keys)->layout;
}

void kv_write(Planner& p, const OpCall& c) {
  const bool is_rotated = layout_of(c.dtype(op_symbols::kKvWriteBatched["dtype:kv_k"])) == KvLayout::kRotated;
  p.launch("kv_write_batched", is_rotated ? "kv_write_rotated" : "kv_write_batched", c.rows(), 1, 1, kThreads, 0,
           p.args_of_op(c));
}

void rope_kv_write(Planner& p, const OpCall& c) {
  const auto push = c.constants<push::RmsNormFusedRopeKvWrite>();
  constexpr auto kSymbols = op_symbols::kRmsNormFusedRopeKvWrite;
  const std::uint32_t q_heads = c.symbols[kSymbols["dim:nq"]] / push.head_dim,
                      k_heads = c.symbols[kSymbols["dim:nk"]] / push.head_dim;
  auto args = p.args_of_op(c);
  // Where the cells of a head lie together, a warp writes the head as a whole.
  constexpr std::uint32_t kMostOfWarp = 256;
  const KvLayout layout = layout_of(c.dtype(kSymbols["dtype:kv_k"]));
  const std::uint32_t nv = c.symbols[kSymbols["dim:nv"]],
                      v_part = layout == KvLayout::kTokens ? kMostOfWarp : nv / k_heads;
  if (push.head_dim <= kMostOfWarp && v_part <= kMostOfWarp) {
    args.symbols[symbol::RopeKvWrite::v_part] = v_part;
    p.launch("kv_write_batched", layout == KvLayout::kRotated ? "rope_kv_write_rotated" : "rope_kv_write_heads",
             c.rows(), ceil_div(q_heads + k_heads + ceil_div(nv, v_part), 4), 1, 128, 0, args);
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

// Grid: channels, then the tokens with which a slot may begin.
void conv1d(Planner& p, const OpCall& c) {
  const std::uint32_t channels = c.symbols[op_symbols::kSsmConv1d["dim:c"]],
                      n = c.symbols[op_symbols::kSsmConv1d["dim:n"]];
  p.launch("ssm_conv1d", "ssm_conv1d", ceil_div(channels, 256), c.most(n), 1, 256, 0,
           p.args<symbol::SsmConv1d>(c, {.rows = n, .c = channels}));
}
// As conv1d.
void pool_mean(Planner& p, const OpCall& c) {
  const std::uint32_t d = c.symbols[op_symbols::kPoolMean["dim:d"]], n = c.symbols[op_symbols::kPoolMean["dim:n"]];
  p.launch("pool_mean", "pool_mean", ceil_div(d, 256), c.most(n), 1, 256, 0,
           p.args<symbol::PoolMean>(c, {.rows = n, .d = d}));
}
void delta_net(Planner& p, const OpCall& c) {
  const auto push = c.constants<push::SsmDeltaNet>();
  const std::uint32_t n = c.symbols[op_symbols::kSsmDeltaNet["dim:n"]];
  const std::uint64_t floats = std::uint64_t{push.k_dim} * push.v_dim + 2 * push.k_dim + 2 * (push.k_dim / 256 + 1);
  p.launch("ssm_delta_net", "ssm_delta_net", push.n_v_heads, c.most(n), 1, (push.v_dim + 31) / 32 * 32, floats * 4,
           p.args<symbol::Rows>(c, {.rows = n}));
}

void sample(Planner& p, const OpCall& c) {
  constexpr std::uint32_t kParts = 32;  // of a row (sample.cu)
  p.scratch(c.rows() * std::max(std::uint64_t{c.symbols[op_symbols::kSample["dim:v"]]} * 6, std::uint64_t{2} * kParts) *
            4);
  p.launch("sample", "sample_parts", c.rows(), kParts, 1, kThreads, spreading_shared(p, c.rows() * kParts),
           p.args_of_op(c));
  p.launch("sample", "sample", c.rows(), 1, 1, 1024, 0, p.args_of_op(c));
}
void slice(Planner& p, const OpCall& c) {
  const auto push = c.constants<push::Slice>();
  p.launch("slice", "slice", c.rows(), ceil_div(std::uint64_t{push.groups} * push.width, 1024), 1, kThreads, 0,
           p.args_of_op(c));
}
void copy_rows(Planner& p, const OpCall& c) {
  p.launch("copy_rows", "copy_rows", c.rows(), std::min(ceil_div(c.symbols[op_symbols::kCopyRows["dim:w"]], 4096), 64u),
           1, kThreads, 0, p.args_of_op(c));
}

template <class Operand>
constexpr CudaOp::Pages pages_of(std::size_t width_symbol) {
  return {Operand::page_table, Operand::pos, Operand::slot, static_cast<int>(width_symbol)};
}

}  // namespace

std::string kernel_name(ir::Op op) {
  std::string name(to_string(op));
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return name;
}

Matrix matrix_of(const OpCall& c) {
  static_assert(operand::is_same_place(operand::Linear::w, operand::LmHead::w) &&
                operand::is_same_place(operand::Linear::x, operand::LmHead::x));
  constexpr auto kSymbols = op_symbols::kLinear;
  const bool is_linear = c.op == Op::LINEAR;
  const std::uint32_t m = c.symbols[kSymbols["dim:m"]];
  return {c.buffers[operand::Linear::w],
          c.dtype(kSymbols["dtype:w"]),
          m,
          is_linear ? c.buffers[operand::Linear::bias] : Place{},
          is_linear ? c.buffers[operand::Linear::y] : c.buffers[operand::LmHead::logits],
          m};
}

void plan_linear_op(Planner& p, const OpCall& c, const LinearWith& with) {
  constexpr auto kSymbols = op_symbols::kLinear;
  plan_linear(p, c, c.buffers[operand::Linear::x], c.dtype(kSymbols["dtype:x"]), c.symbols[kSymbols["dim:k"]],
              {matrix_of(c)}, with);
}

DigitRows digits_before(Planner& p, const OpCall& products, std::uint32_t k, const std::vector<Matrix>& matrices) {
  return p.is_fast() ? DigitRows{} : plan_digits(p, products, k, matrices);
}

void plan_glu_quantize(Planner& p, const OpCall& c, const GluRows& rows, const DigitRows& digits) {
  auto args = p.args<symbol::GluQuantize>(c, {.rows = c.rows_symbol,
                                              .k = rows.k,
                                              .dtype_y = static_cast<std::uint32_t>(rows.type),
                                              .digit_columns = digits.columns});
  args.set_buffers<cuda::binding::GluQuantize>(
      {.gate = rows.gate, .up = rows.up, .y = rows.y, .quantized = rows.quantized, .digits = digits.tiles});
  args.set_constants(push::Glu{rows.act});
  const std::uint32_t pieces = ceil_div(rows.k, 1024);
  p.launch("quantize", "glu_quantize", c.rows(), pieces, 1, 128,
           c.rows() > 1 ? spreading_shared(p, c.rows() * pieces) : 0, args);
}

const std::vector<CudaOp>& cuda_ops() {
  static const std::vector<CudaOp> ops{
      {Op::EMBED, "n", op_symbols::kEmbed, Keys::kWeights, embed},
      {Op::RMS_NORM, "n", op_symbols::kNorm, Keys::kNone, plan_norm},
      {Op::RMS_NORM_FUSED_QKV, "n", op_symbols::kRmsNormFusedQkv, Keys::kWeights, qkv},
      {Op::RMS_NORM_FUSED_MLP_GATE_UP, "n", op_symbols::kRmsNormFusedMlpGateUp, Keys::kWeights, gate_up},
      {Op::ROPE, "n", op_symbols::kRope, Keys::kNone, row<kThreads>},
      {Op::RMS_NORM_FUSED_ROPE_KV_WRITE, "n", op_symbols::kRmsNormFusedRopeKvWrite, Keys::kKv, rope_kv_write,
       pages_of<operand::RmsNormFusedRopeKvWrite>(op_symbols::kRmsNormFusedRopeKvWrite["dim:m"])},
      {Op::FLASH_ATTN, "n", op_symbols::kFlashAttn, Keys::kKv, attention,
       pages_of<operand::FlashAttn>(op_symbols::kFlashAttn["dim:m"])},
      {Op::FLASH_ATTN_BATCHED, "n", op_symbols::kFlashAttn, Keys::kKv, attention,
       pages_of<operand::FlashAttnBatched>(op_symbols::kFlashAttn["dim:m"])},
      {Op::MOE_GATE_TOPK, "n", op_symbols::kMoeGateTopk, Keys::kWeights, gate_topk},
      {Op::MOE_GATE_UP, "n", op_symbols::kMoeGateUp, Keys::kWeights, experts},
      {Op::MOE_SWIGLU, "n", op_symbols::kGlu, Keys::kNone, wide},
      {Op::MOE_DOWN_ACC, "n", op_symbols::kMoeDownAcc, Keys::kWeights, plan_moe_down_acc},
      {Op::SHARED_EXPERT, "n", op_symbols::kSharedExpert, Keys::kWeights, plan_shared_expert},
      {Op::SSM_CONV1D, nullptr, op_symbols::kSsmConv1d, Keys::kNone, conv1d},
      {Op::SSM_DELTA_NET, nullptr, op_symbols::kSsmDeltaNet, Keys::kNone, delta_net},
      {Op::SSM_GATED_NORM, "n", op_symbols::kNorm, Keys::kNone, plan_norm},
      {Op::RESIDUAL_RMS_NORM, "n", op_symbols::kNorm, Keys::kNone, plan_norm},
      {Op::LM_HEAD, "n", op_symbols::kLmHead, Keys::kWeights, linear},
      {Op::ARGMAX, "n", op_symbols::kSample, Keys::kNone, row<1024>},
      {Op::SAMPLE, "n", op_symbols::kSample, Keys::kNone, sample},
      {Op::KV_WRITE_BATCHED, "n", op_symbols::kKvWriteBatched, Keys::kKv, kv_write,
       pages_of<operand::KvWriteBatched>(op_symbols::kKvWriteBatched["dim:m"])},
      {Op::MATMUL_WMMA_Q4K, "n", op_symbols::kMatmulWmmaQ4K, Keys::kQ4K, matmul_q4k},
      {Op::STREAM_OUT, nullptr, op_symbols::kStreamOut, Keys::kNone, stream_out},
      {Op::LOAD_REQUEST_STATE, "n", op_symbols::kRequestState, Keys::kNone, thread},
      {Op::STORE_REQUEST_STATE, "n", op_symbols::kRequestState, Keys::kNone, thread},
      {Op::VERIFY_K, "b", op_symbols::kVerifyK, Keys::kNone, row<1024>},
      {Op::LINEAR, "n", op_symbols::kLinear, Keys::kWeights, linear},
      {Op::QUANTIZE, "n", op_symbols::kQuantize, Keys::kNone, quantize},
      {Op::ADD, "n", op_symbols::kAdd, Keys::kNone, wide},
      {Op::GLU, "n", op_symbols::kGlu, Keys::kNone, wide},
      {Op::SCALE, "n", op_symbols::kAdd, Keys::kNone, wide},
      {Op::SOFTCAP, "n", op_symbols::kAdd, Keys::kNone, wide},
      {Op::SIGMOID_MUL, "n", op_symbols::kAdd, Keys::kNone, wide},
      {Op::GATHER_ROWS, "r", op_symbols::kGatherRows, Keys::kNone, wide},
      {Op::SLICE, "n", {}, Keys::kNone, slice},
      {Op::MOE_LINEAR, "n", op_symbols::kMoeLinear, Keys::kWeights, experts},
      {Op::MOE_SUM, "n", op_symbols::kMoeSum, Keys::kNone, plan_moe_sum},
      {Op::COPY_ROWS, "n", op_symbols::kCopyRows, Keys::kNone, copy_rows},
      {Op::POOL_MEAN, nullptr, op_symbols::kPoolMean, Keys::kNone, pool_mean},
  };
  return ops;
}

const CudaOp* find_cuda_op(ir::Op op) {
  for (const CudaOp& entry : cuda_ops())
    if (entry.op == op) return &entry;
  return nullptr;
}

}  // namespace zinc_rt::ring
