// The ops of the tier: their symbols, and the launches that they are, but for norms (plan_norms.cpp), experts
// (plan_experts.cpp), attention (plan_attention.cpp) and products (plan_linear.cpp).
#include <algorithm>

#include "kernels/common/push.h"
#include "ring/cuda/ops.h"

namespace zinc_rt::ring {
namespace {

using ir::Op;

constexpr std::uint32_t kThreads = 256;

// A kernel named as the op over rows of symbols[0] values, one a thread where rows are few, else four.
void wide(Planner& p, const OpCall& c) {
  const std::uint32_t values = c.rows() <= 8 ? kThreads : 4 * kThreads;
  p.launch(kernel_name(c.op), kernel_name(c.op), c.rows(), c.symbols.empty() ? 1 : ceil_div(c.symbols[0], values), 1,
           kThreads, 0, p.args(c, c.symbols));
}
// A workgroup a row.
template <std::uint32_t kBlock>
void row(Planner& p, const OpCall& c) {
  p.launch(kernel_name(c.op), kernel_name(c.op), c.rows(), 1, 1, kBlock, 0, p.args(c, c.symbols));
}
// A thread a row.
void thread(Planner& p, const OpCall& c) {
  p.launch(kernel_name(c.op), kernel_name(c.op), ceil_div(c.rows(), 128), 1, 1, 128, 0, p.args(c, c.symbols));
}
void one(Planner& p, const OpCall& c) {  // symbols[0] are the rows
  auto args = p.args(c, {});
  std::ranges::copy(c.symbols, args.symbols);
  p.launch(kernel_name(c.op), kernel_name(c.op), 1, 1, 1, 128, 0, args);
}

void embed(Planner& p, const OpCall& c) {
  p.launch("linear." + std::string(to_string(c.dtype(2))), "embed", c.rows(), ceil_div(c.symbols[1], 1024), 1, kThreads,
           0, p.args(c, {c.symbols[0], c.symbols[1]}));
}

void quantize(Planner& p, const OpCall& c) {
  p.launch("quantize", "quantize", c.rows(), ceil_div(c.symbols[0], 2048), 1, kThreads, 0, p.args(c, c.symbols));
}

// Shared memory that so many workgroups ask for only to spread over all multiprocessors: of a short launch they begin
// while the products before it end, and would all go to the first few that become free.
std::uint32_t spreading_shared(const Planner& p, std::uint32_t workgroups) {
  constexpr std::uint32_t kMostEach = 8, kReserved = 1536;  // bytes of each workgroup that are not its own
  const std::uint32_t each = ceil_div(workgroups, kMultiprocessors);
  return each > kMostEach ? 0 : std::max(p.most_shared() / each, kReserved) - kReserved;
}

void linear(Planner& p, const OpCall& c) {
  plan_linear_op(p, c);
}
void matmul_q4k(Planner& p, const OpCall& c) {
  plan_linear(p, c, c.buffers[0], DType::kQ8A256, c.symbols[0],
              {{c.buffers[1], DType::kQ4_K, c.symbols[1], nullptr, at<float>(c, 2), c.symbols[1]}});
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

void rope_kv_write(Planner& p, const OpCall& c) {
  const auto push = c.constants<push::RmsNormFusedRopeKvWrite>();
  const std::uint32_t q_heads = c.symbols[0] / push.head_dim, k_heads = c.symbols[1] / push.head_dim;
  if (push.head_dim <= 256) {
    const std::uint32_t warps = q_heads + k_heads + ceil_div(c.symbols[2], 256);
    p.launch("kv_write_batched", "rope_kv_write_heads", c.rows(), ceil_div(warps, 4), 1, 128, 0, p.args(c, c.symbols));
    return;
  }
  auto symbols = c.symbols;
  symbols.insert(symbols.end(), {q_heads, k_heads});
  p.launch("kv_write_batched", "rms_norm_fused_rope_kv_write", c.rows(), q_heads + k_heads + 1, 1, 128,
           std::uint64_t{push.head_dim} * 4 + rms_bytes(push.head_dim, push.head_dim), p.args(c, symbols));
}

void attention(Planner& p, const OpCall& c) {
  plan_attention(p, c);
}

// Symbols: c, rows of the step. Grid: channels, then the tokens with which a slot may begin.
void conv1d(Planner& p, const OpCall& c) {
  auto args = p.args(c, {});
  args.symbols[0] = c.symbols[1];
  args.symbols[1] = c.symbols[0];
  p.launch("ssm_conv1d", "ssm_conv1d", ceil_div(c.symbols[0], 256), c.most(c.symbols[1]), 1, 256, 0, args);
}
void delta_net(Planner& p, const OpCall& c) {
  const auto push = c.constants<push::SsmDeltaNet>();
  auto args = p.args(c, {});
  args.symbols[0] = c.symbols[0];
  const std::uint64_t floats = std::uint64_t{push.k_dim} * push.v_dim + 2 * push.k_dim + 2 * (push.k_dim / 256 + 1);
  p.launch("ssm_delta_net", "ssm_delta_net", push.n_v_heads, c.most(c.symbols[0]), 1, (push.v_dim + 31) / 32 * 32,
           floats * 4, args);
}

void sample(Planner& p, const OpCall& c) {
  constexpr std::uint32_t kParts = 32;  // of a row (sample.cu)
  p.scratch(c.rows() * std::max(std::uint64_t{c.symbols[0]} * 6, std::uint64_t{2} * kParts) * 4);
  p.launch("sample", "sample_parts", c.rows(), kParts, 1, kThreads, spreading_shared(p, c.rows() * kParts),
           p.args(c, c.symbols));
  p.launch("sample", "sample", c.rows(), 1, 1, 1024, 0, p.args(c, c.symbols));
}
void slice(Planner& p, const OpCall& c) {
  const auto push = c.constants<push::Slice>();
  p.launch("slice", "slice", c.rows(), ceil_div(std::uint64_t{push.groups} * push.width, 1024), 1, kThreads, 0,
           p.args(c, {}));
}
void state_copy(Planner& p, const OpCall& c) {
  p.launch("state_copy", "state_copy", c.rows(), std::min(ceil_div(c.symbols[0], 4096), 64u), 1, kThreads, 0,
           p.args(c, c.symbols));
}

}  // namespace

std::string kernel_name(ir::Op op) {
  std::string name(to_string(op));
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return name;
}

Matrix matrix_of(const OpCall& c) {
  const bool has_bias = c.op == Op::LINEAR;
  return {c.buffers[1],
          c.dtype(2),
          c.symbols[1],
          has_bias ? at<const float>(c, 2) : nullptr,
          at<float>(c, has_bias ? 3 : 2),
          c.symbols[1]};
}

void plan_linear_op(Planner& p, const OpCall& c, const LinearWith& with) {
  plan_linear(p, c, c.buffers[0], c.dtype(3), c.symbols[0], {matrix_of(c)}, with);
}

DigitRows digits_before(Planner& p, const OpCall& products, std::uint32_t k, const std::vector<Matrix>& matrices) {
  return p.is_fast() ? DigitRows{} : plan_digits(p, products, k, matrices);
}

void plan_glu_quantize(Planner& p, const OpCall& c, std::uint32_t k, cuda::OpArgs args, const DigitRows& digits) {
  args.buffers[4] = digits.tiles;
  args.symbols[3] = digits.columns;
  const std::uint32_t pieces = ceil_div(k, 1024);
  p.launch("quantize", "glu_quantize", c.rows(), pieces, 1, 128,
           c.rows() > 1 ? spreading_shared(p, c.rows() * pieces) : 0, args);
}

bool is_sum_of(const OpCall& first, const OpCall& add) {
  if (first.op != Op::LINEAR && first.op != Op::MOE_SUM) return false;
  const void* y = first.buffers[first.op == Op::LINEAR ? 3 : 4];
  return add.op == Op::ADD && first.rows_symbol == add.rows_symbol && add.buffers[1] == y &&
         add.buffers[2] == add.buffers[0] && add.buffers[0] != y;
}

const std::vector<CudaOp>& cuda_ops() {
  static const std::vector<CudaOp> ops{
      {Op::EMBED, "n", {"dim:v", "dim:d", "dtype:table"}, Keys::kWeights, embed},
      {Op::RMS_NORM, "n", {"dim:d"}, Keys::kNone, plan_norm},
      {Op::RMS_NORM_FUSED_QKV,
       "n",
       {"dim:d", "dim:nq", "dim:nk", "dim:nv", "dtype:q_w", "dtype:k_w", "dtype:v_w"},
       Keys::kWeights,
       qkv},
      {Op::RMS_NORM_FUSED_MLP_GATE_UP, "n", {"dim:d", "dim:f", "dtype:gate_w", "dtype:up_w"}, Keys::kWeights, gate_up},
      {Op::ROPE, "n", {"dim:d", "dim:p"}, Keys::kNone, row<kThreads>},
      {Op::RMS_NORM_FUSED_ROPE_KV_WRITE,
       "n",
       {"dim:nq", "dim:nk", "dim:nv", "dim:m", "dim:p", "dtype:kv_k", "pitch:kv_k", "pitch:kv_v"},
       Keys::kKv,
       rope_kv_write,
       8,
       5,
       6,
       3},
      {Op::FLASH_ATTN, "n", {"dim:m", "dtype:kv_k", "pitch:kv_k", "pitch:kv_v"}, Keys::kKv, attention, 5, 3, 4, 0},
      {Op::FLASH_ATTN_BATCHED,
       "n",
       {"dim:m", "dtype:kv_k", "pitch:kv_k", "pitch:kv_v"},
       Keys::kKv,
       attention,
       5,
       3,
       4,
       0},
      {Op::MOE_GATE_TOPK, "n", {"dim:d", "dim:e", "dtype:gate_w", "dtype:x"}, Keys::kWeights, gate_topk},
      {Op::MOE_GATE_UP,
       "n",
       {"dim:d", "dim:e", "dim:f", "dim:k", "dtype:gate_w", "dtype:up_w", "dtype:x", "pitch:gate_w", "pitch:up_w"},
       Keys::kWeights,
       experts},
      {Op::MOE_SWIGLU, "n", {"dim:f"}, Keys::kNone, wide},
      {Op::MOE_DOWN_ACC,
       "n",
       {"dim:f", "dim:e", "dim:d", "dim:k", "dtype:down_w", "dtype:x", "pitch:down_w"},
       Keys::kWeights,
       plan_moe_down_acc},
      {Op::SHARED_EXPERT,
       "n",
       {"dim:d", "dim:f", "dtype:gate_w", "dtype:up_w", "dtype:down_w"},
       Keys::kWeights,
       plan_shared_expert},
      {Op::SSM_CONV1D, nullptr, {"dim:c", "dim:n"}, Keys::kNone, conv1d},
      {Op::SSM_DELTA_NET, nullptr, {"dim:n"}, Keys::kNone, delta_net},
      {Op::SSM_GATED_NORM, "n", {"dim:d"}, Keys::kNone, plan_norm},
      {Op::RESIDUAL_RMS_NORM, "n", {"dim:d"}, Keys::kNone, plan_norm},
      {Op::LM_HEAD, "n", {"dim:d", "dim:v", "dtype:w", "dtype:x"}, Keys::kWeights, linear},
      {Op::ARGMAX, "n", {"dim:v"}, Keys::kNone, row<1024>},
      {Op::SAMPLE, "n", {"dim:v"}, Keys::kNone, sample},
      {Op::KV_WRITE_BATCHED,
       "n",
       {"dim:nk", "dim:nv", "dim:m", "dtype:kv_k", "pitch:kv_k", "pitch:kv_v"},
       Keys::kKv,
       row<kThreads>,
       4,
       2,
       3,
       2},
      {Op::MATMUL_WMMA_Q4K, "n", {"dim:k", "dim:m"}, Keys::kQ4K, matmul_q4k},
      {Op::STREAM_OUT, nullptr, {"dim:n", "dim:entries"}, Keys::kNone, one},
      {Op::LOAD_REQUEST_STATE, "n", {"dim:s", "dim:fields"}, Keys::kNone, thread},
      {Op::STORE_REQUEST_STATE, "n", {"dim:s", "dim:fields"}, Keys::kNone, thread},
      {Op::VERIFY_K, "b", {"dim:k", "dim:v"}, Keys::kNone, row<1024>},
      {Op::LINEAR, "n", {"dim:k", "dim:m", "dtype:w", "dtype:x"}, Keys::kWeights, linear},
      {Op::QUANTIZE, "n", {"dim:k", "dtype:y"}, Keys::kNone, quantize},
      {Op::ADD, "n", {"dim:d"}, Keys::kNone, wide},
      {Op::GLU, "n", {"dim:f"}, Keys::kNone, wide},
      {Op::SCALE, "n", {"dim:d"}, Keys::kNone, wide},
      {Op::SOFTCAP, "n", {"dim:d"}, Keys::kNone, wide},
      {Op::SIGMOID_MUL, "n", {"dim:d"}, Keys::kNone, wide},
      {Op::GATHER_ROWS, "r", {"dim:d", "dim:n"}, Keys::kNone, wide},
      {Op::SLICE, "n", {}, Keys::kNone, slice},
      {Op::MOE_LINEAR,
       "n",
       {"dim:d", "dim:e", "dim:f", "dim:k", "dtype:w", "dtype:x", "pitch:w"},
       Keys::kWeights,
       experts},
      {Op::MOE_SUM, "n", {"dim:d", "dim:k", "dim:e"}, Keys::kNone, plan_moe_sum},
      {Op::STATE_COPY, "n", {"dim:w"}, Keys::kNone, state_copy},
  };
  return ops;
}

bool is_scratch_read_later(ir::Op op) {
  return op == Op::MOE_DOWN_ACC;
}

const CudaOp* find_cuda_op(ir::Op op) {
  for (const CudaOp& entry : cuda_ops())
    if (entry.op == op) return &entry;
  return nullptr;
}

}  // namespace zinc_rt::ring
