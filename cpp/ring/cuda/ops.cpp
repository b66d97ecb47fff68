// The ops of the tier: their symbols, and the launches that they are.
#include <algorithm>
#include <cstddef>
#include <optional>

#include "kernels/common/push.h"
#include "ring/cuda/plan.h"

namespace zinc_rt::ring {
namespace {

using ir::Op;

constexpr std::uint32_t kThreads = 256;

std::string lower_case(Op op) {
  std::string name(to_string(op));
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return name;
}
template <class T>
T* at(const OpCall& call, std::size_t i) {
  return static_cast<T*>(call.buffers[i]);
}
// In whole vectors of 16 bytes, as which the compiler may read it.
std::uint64_t rms_bytes(std::uint32_t d, std::uint32_t group) {
  return (std::uint64_t{d} / group * ((group + 255) / 256 + 1) * 4 + 31) / 16 * 16;
}

// A kernel named as the op over rows of symbols[0] values, one a thread where rows are few, else four.
void wide(Planner& p, const OpCall& c) {
  const std::uint32_t values = c.rows() <= 8 ? kThreads : 4 * kThreads;
  p.launch(lower_case(c.op), lower_case(c.op), c.rows(), c.symbols.empty() ? 1 : ceil_div(c.symbols[0], values), 1,
           kThreads, 0, p.args(c, c.symbols));
}
// A workgroup a row.
template <std::uint32_t kBlock>
void row(Planner& p, const OpCall& c) {
  p.launch(lower_case(c.op), lower_case(c.op), c.rows(), 1, 1, kBlock, 0, p.args(c, c.symbols));
}
// A thread a row.
void thread(Planner& p, const OpCall& c) {
  p.launch(lower_case(c.op), lower_case(c.op), ceil_div(c.rows(), 128), 1, 1, 128, 0, p.args(c, c.symbols));
}
void one(Planner& p, const OpCall& c) {  // symbols[0] are the rows
  auto args = p.args(c, {});
  std::ranges::copy(c.symbols, args.symbols);
  p.launch(lower_case(c.op), lower_case(c.op), 1, 1, 1, 128, 0, args);
}

void embed(Planner& p, const OpCall& c) {
  p.launch("linear." + std::string(to_string(c.dtype(2))), "embed", c.rows(), ceil_div(c.symbols[1], 1024), 1, kThreads,
           0, p.args(c, {c.symbols[0], c.symbols[1]}));
}

// Rows of x by norm_rows, with `added` to them first if not null, to rows of the types that are wanted (null: not).
struct NormedRows {
  void *floats = nullptr, *q8a32 = nullptr, *q8a256 = nullptr;
  DigitRows digits = {};  // of q8a256

  void*& of(DType dtype) { return dtype == DType::kF32 ? floats : dtype == DType::kQ8A32 ? q8a32 : q8a256; }
};
// The sum over each token's choices of experts, to be added to hidden rows; null: absent.
struct ChoiceSum {
  void *y, *ids, *weights, *scale, *z, *hidden;
  std::uint32_t k, e;
};
std::uint64_t norm_bytes(std::uint32_t d) {
  return std::uint64_t{d} * 4 + rms_bytes(d, d);
}
void norm_rows(Planner& p, const OpCall& c, void* x, void* w, void* added, std::uint32_t d, const NormedRows& to,
               const ChoiceSum* sum = nullptr) {
  auto args = p.args(c, {d, to.digits.columns});
  void* const buffers[] = {x, w, to.floats, to.q8a32, to.q8a256, added, to.digits.tiles};
  std::ranges::copy(buffers, args.buffers);
  if (sum == nullptr) {
    p.launch("rms_norm", "norm_rows", c.rows(), 1, 1, 512, norm_bytes(d), args);
    return;
  }
  void* const of_sum[] = {sum->y, sum->ids, sum->weights, sum->scale, sum->z};
  std::ranges::copy(of_sum, args.buffers + 7);
  args.symbols[3] = sum->k, args.symbols[4] = sum->e;
  p.launch("rms_norm", "moe_sum_norm_rows", c.rows(), 1, 1, 512, std::uint64_t{d} * 4 + norm_bytes(d), args);
}
// RESIDUAL_RMS_NORM, or RMS_NORM of whole rows, and QUANTIZE of its rows if not null.
void row_norm(Planner& p, const OpCall& c, const OpCall* quantize) {
  const bool is_residual = c.op == Op::RESIDUAL_RMS_NORM;
  NormedRows to{c.buffers[is_residual ? 3 : 2]};
  if (quantize != nullptr) to.of(quantize->dtype(1)) = quantize->buffers[1];
  norm_rows(p, c, c.buffers[0], c.buffers[is_residual ? 2 : 1], is_residual ? c.buffers[1] : nullptr, c.symbols[0], to);
}
bool is_row_norm(const OpCall& c) {
  return c.op == Op::RESIDUAL_RMS_NORM ||
         (c.op == Op::RMS_NORM && c.buffers[1] != nullptr && c.constants<push::RmsNorm>().group == c.symbols[0]);
}

void norm(Planner& p, const OpCall& c) {
  const std::uint32_t d = c.symbols[0];
  if (c.op == Op::RESIDUAL_RMS_NORM) {
    row_norm(p, c, nullptr);
    return;
  }
  static_assert(offsetof(push::SsmGatedNorm, group) == offsetof(push::RmsNorm, group));
  const std::uint32_t group = c.constants<push::RmsNorm>().group;
  p.launch("rms_norm", lower_case(c.op), c.rows(), 1, 1, kThreads, rms_bytes(d, group), p.args(c, c.symbols));
}

void quantize(Planner& p, const OpCall& c) {
  p.launch("quantize", "quantize", c.rows(), ceil_div(c.symbols[0], 2048), 1, kThreads, 0, p.args(c, c.symbols));
}

// What a launch before products of q8a256 rows makes of these besides. In arithmetic `fast` it may be another layout.
DigitRows digits_before(Planner& p, const OpCall& products, std::uint32_t k, const std::vector<Matrix>& matrices) {
  return p.is_fast() ? DigitRows{} : plan_digits(p, products, k, matrices);
}

// Shared memory that so many workgroups ask for only to spread over all multiprocessors: of a short launch they begin
// while the products before it end, and would all go to the first few that become free.
std::uint32_t spreading_shared(const Planner& p, std::uint32_t workgroups) {
  constexpr std::uint32_t kMostEach = 8, kReserved = 1536;  // bytes of each workgroup that are not its own
  const std::uint32_t each = ceil_div(workgroups, kMultiprocessors);
  return each > kMostEach ? 0 : std::max(p.most_shared() / each, kReserved) - kReserved;
}

// args: of the kernel, whose rows have k values.
void glu_quantize(Planner& p, const OpCall& c, std::uint32_t k, cuda::OpArgs args, const DigitRows& digits = {}) {
  args.buffers[4] = digits.tiles;
  args.symbols[3] = digits.columns;
  const std::uint32_t pieces = ceil_div(k, 1024);
  p.launch("quantize", "glu_quantize", c.rows(), pieces, 1, 128,
           c.rows() > 1 ? spreading_shared(p, c.rows() * pieces) : 0, args);
}

// h = RMS_NORM(x, w) in each type that the matrices want, but for what products make themselves, then the products.
// sum: null, or what is added to x first.
void norm_linear(Planner& p, const OpCall& c, bool quantized, std::uint32_t d, const std::vector<Matrix>& matrices,
                 const ChoiceSum* sum = nullptr) {
  const auto wanted = [&](const Matrix& m) { return quantized ? act_dtype(m.dtype) : DType::kF32; };
  const Norm norm{at<const float>(c, 1), c.constants<push::ResidualRmsNorm>().eps};
  NormedRows rows;
  const DType types[] = {DType::kF32, DType::kQ8A32, DType::kQ8A256};
  std::vector<Matrix> of_type[3];
  bool is_wanted = false;
  for (int i = 0; i < 3; ++i) {
    std::ranges::copy_if(matrices, std::back_inserter(of_type[i]),
                         [&](const Matrix& m) { return wanted(m) == types[i]; });
    if (of_type[i].empty() || can_norm(c, types[i], d)) continue;
    is_wanted = true;
    if (types[i] == DType::kQ8A256) rows.digits = digits_before(p, c, d, of_type[i]);
    if (types[i] == DType::kQ8A256 && rows.digits.is_all) continue;
    rows.of(types[i]) = p.scratch(std::uint64_t{c.rows()} * row_bytes(types[i], d));
  }
  if (is_wanted) norm_rows(p, c, c.buffers[0], c.buffers[1], nullptr, d, rows, sum);
  for (int i = 0; i < 3; ++i) {
    if (of_type[i].empty()) continue;
    const bool is_inside = can_norm(c, types[i], d);
    plan_linear(p, c, is_inside ? c.buffers[0] : rows.of(types[i]), types[i], d, of_type[i], {}, nullptr,
                is_inside ? &norm : nullptr, types[i] == DType::kQ8A256 ? rows.digits : DigitRows{});
  }
}
void qkv_after(Planner& p, const OpCall& c, const ChoiceSum* sum) {
  std::vector<Matrix> matrices;
  for (std::size_t i = 0; i < 3; ++i)
    matrices.push_back({c.buffers[2 + i], c.dtype(4 + i), c.symbols[1 + i], at<const float>(c, 5 + i),
                        at<float>(c, 8 + i), c.symbols[1 + i]});
  norm_linear(p, c, c.constants<push::RmsNormFusedQkv>().quantize != 0, c.symbols[0], matrices, sum);
}
void qkv(Planner& p, const OpCall& c) {
  qkv_after(p, c, nullptr);
}
void gate_up(Planner& p, const OpCall& c) {
  std::vector<Matrix> matrices;
  for (std::size_t i = 0; i < 2; ++i)
    matrices.push_back({c.buffers[2 + i], c.dtype(2 + i), c.symbols[1], nullptr, at<float>(c, 4 + i), c.symbols[1]});
  norm_linear(p, c, c.constants<push::RmsNormFusedMlpGateUp>().quantize != 0, c.symbols[0], matrices);
}

// Symbols: k, m, type of w, type of x.
Matrix matrix_of(const OpCall& c) {
  const bool has_bias = c.op == Op::LINEAR;
  return {c.buffers[1],
          c.dtype(2),
          c.symbols[1],
          has_bias ? at<const float>(c, 2) : nullptr,
          at<float>(c, has_bias ? 3 : 2),
          c.symbols[1]};
}
void linear_and(Planner& p, const OpCall& c, float* residual, const DigitRows& digits = {}) {
  plan_linear(p, c, c.buffers[0], c.dtype(3), c.symbols[0], {matrix_of(c)}, {}, residual, nullptr, digits);
}
void linear(Planner& p, const OpCall& c) {
  linear_and(p, c, nullptr);
}
void matmul_q4k(Planner& p, const OpCall& c) {
  plan_linear(p, c, c.buffers[0], DType::kQ8A256, c.symbols[0],
              {{c.buffers[1], DType::kQ4_K, c.symbols[1], nullptr, at<float>(c, 2), c.symbols[1]}});
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

// The products of an op of experts, or nothing. MOE_GATE_UP: symbols d, e, f, k, types of gate, up and x, pitches of
// gate and up. MOE_LINEAR: d, e, f, k, types of w and x, pitch.
std::optional<ExpertProducts> expert_products(const OpCall& c) {
  if (c.op != Op::MOE_GATE_UP && c.op != Op::MOE_LINEAR) return std::nullopt;
  const bool is_pair = c.op == Op::MOE_GATE_UP;
  const std::size_t n = is_pair ? 2 : 1;
  const std::uint32_t e = c.symbols[1], f = c.symbols[2], k = c.symbols[3];
  ExpertProducts products{c.dtype(4 + n), c.symbols[0], {}, {}};
  for (std::size_t i = 0; i < n; ++i)
    products.matrices.push_back(
        {c.buffers[1 + i], c.dtype(4 + i), f, nullptr, at<float>(c, 2 + n + i), f, c.symbols[5 + n + i]});
  products.experts = {at<const std::int32_t>(c, 1 + n), k, e, is_pair ? 1 : c.constants<push::MoeLinear>().rows};
  return products;
}
void moe_products(Planner& p, const OpCall& c) {
  const auto products = expert_products(c);
  plan_linear(p, c, c.buffers[0], products->x_dtype, products->k, products->matrices, products->experts);
}

// Symbols: d, e, type of the router, type of x. next: the first that reads the choices sorted by expert, or nothing.
void choose_experts(Planner& p, const OpCall& c, const std::optional<ExpertProducts>& next) {
  const std::uint32_t e = c.symbols[1], n_used = c.constants<push::MoeGateTopk>().n_used;
  // Of so many tokens one workgroup is faster than one a token and a launch that sorts.
  constexpr std::uint32_t kMostAtOnce = 32;
  const bool is_few = e <= 512 && n_used <= 32;
  const Sorting sorting = is_few && next && c.rows() <= kMostAtOnce ? plan_sorting(p, c, *next) : Sorting{};
  plan_linear(p, c, c.buffers[0], c.dtype(3), c.symbols[0],
              {{c.buffers[1], c.dtype(2), e, nullptr, at<float>(c, 2), e}});
  const std::string of_lanes = e <= 128 ? "_128" : "_512";
  if (sorting.columns != 0) {
    auto args = p.args(c, {e, sorting.columns});
    args.buffers[5] = sorting.at.items;
    args.buffers[6] = sorting.at.order;
    p.launch("moe_gate_topk", "moe_gate_topk_sorted" + of_lanes, 1, 1, 1, 32 * c.rows(),
             (2 * std::uint64_t{e} + 2 + c.rows() * n_used) * 4, args);
  } else if (is_few) {
    p.launch("moe_gate_topk", "moe_gate_topk" + of_lanes, c.rows(), 1, 1, 32, 0, p.args(c, {e}));
  } else {
    const std::uint64_t words = 2 * std::uint64_t{e} + n_used + 64;
    p.launch("moe_gate_topk", "moe_gate_topk", c.rows(), 1, 1, kThreads, words * 4, p.args(c, {e}));
  }
}
void moe_gate_topk(Planner& p, const OpCall& c) {
  choose_experts(p, c, std::nullopt);
}
void add_choices(Planner& p, const OpCall& c, const ChoiceSum& sum, std::uint32_t d) {
  auto args = p.args(c, {d, sum.k, sum.e});
  void* const buffers[] = {sum.y, sum.ids, sum.weights, sum.scale, sum.z, sum.hidden};
  std::ranges::copy(buffers, args.buffers);
  p.launch("moe_sum", "moe_sum", c.rows(), ceil_div(d, kThreads), 1, kThreads, 0, args);
}
// Symbols: d, k, e.
ChoiceSum sum_of(const OpCall& c) {
  return {c.buffers[0], c.buffers[1], c.buffers[2], c.buffers[3], c.buffers[4], nullptr, c.symbols[1], c.symbols[2]};
}
void moe_sum(Planner& p, const OpCall& c) {
  add_choices(p, c, sum_of(c), c.symbols[0]);
}
// All but the sum, which is left to do. Symbols: f, e, d, k, types of w and x, pitch.
ChoiceSum down(Planner& p, const OpCall& c) {
  const std::uint32_t d = c.symbols[2], k = c.symbols[3], e = c.symbols[1];
  auto* y = static_cast<float*>(p.scratch(std::uint64_t{c.rows()} * k * d * 4));
  plan_linear(p, c, c.buffers[0], c.dtype(5), c.symbols[0],
              {{c.buffers[1], c.dtype(4), d, nullptr, y, d, c.symbols[6]}}, {at<const std::int32_t>(c, 2), k, e, k});
  return {y, c.buffers[2], c.buffers[3], c.buffers[4], nullptr, c.buffers[5], k, e};
}
void moe_down_acc(Planner& p, const OpCall& c) {
  add_choices(p, c, down(p, c), c.symbols[2]);
}
// y = gate's product and up's through the activation, by down, of a shared expert. Symbols: d, f, types of gate, up and
// down.
void shared_down(Planner& p, const OpCall& c, float* gate, float* up, float* y) {
  const auto push = c.constants<push::SharedExpert>();
  const std::uint32_t d = c.symbols[0], f = c.symbols[1], n = c.rows();
  const Matrix down{c.buffers[3], c.dtype(4), d, nullptr, y, d};
  const DType type = push.quantize != 0 ? act_dtype(down.dtype) : DType::kF32;
  auto args = p.args(c, {f, static_cast<std::uint32_t>(type)});
  void* const buffers[] = {gate, up, gate, nullptr};
  std::ranges::copy(buffers, args.buffers);
  args.push[0] = push.act;
  if (type == DType::kF32) {
    p.launch("glu", "glu", n, ceil_div(f, 1024), 1, kThreads, 0, args);
    plan_linear(p, c, gate, type, f, {down});
    return;
  }
  args.buffers[3] = p.scratch(std::uint64_t{n} * row_bytes(type, f));
  glu_quantize(p, c, f, args);
  plan_linear(p, c, args.buffers[3], type, f, {down});
}
void shared_expert(Planner& p, const OpCall& c) {
  const bool is_quantized = c.constants<push::SharedExpert>().quantize != 0;
  const std::uint32_t d = c.symbols[0], f = c.symbols[1], n = c.rows();
  const auto floats = [&](std::uint64_t width) { return static_cast<float*>(p.scratch(n * width * 4)); };
  float *gate = floats(f), *up = floats(f), *y = floats(d);
  const Matrix of_gate{c.buffers[1], c.dtype(2), f, nullptr, gate, f},
      of_up{c.buffers[2], c.dtype(3), f, nullptr, up, f};
  const auto project = [&](const std::vector<Matrix>& matrices) {  // which want x in one type
    const DType type = is_quantized ? act_dtype(matrices[0].dtype) : DType::kF32;
    const void* x = type == DType::kF32 ? c.buffers[0] : plan_quantize(p, c, c.buffers[0], type, d);
    plan_linear(p, c, x, type, d, matrices);
  };
  if (!is_quantized || act_dtype(of_gate.dtype) == act_dtype(of_up.dtype)) {
    project({of_gate, of_up});
  } else {
    project({of_gate});
    project({of_up});
  }
  shared_down(p, c, gate, up, y);
  auto args = p.args(c, {d});
  args.buffers[1] = c.buffers[4];
  args.buffers[2] = y;
  args.buffers[3] = c.buffers[5];
  p.launch("shared_expert", "shared_expert", n, 1, 1, kThreads, ceil_div(d, 256) * 4, args);
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
  p.scratch(std::max(std::uint64_t{c.rows()} * c.symbols[0] * 6, std::uint64_t{2} * kParts) * 4);
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

const std::vector<CudaOp>& cuda_ops() {
  static const std::vector<CudaOp> ops{
      {Op::EMBED, "n", {"dim:v", "dim:d", "dtype:table"}, Keys::kWeights, embed},
      {Op::RMS_NORM, "n", {"dim:d"}, Keys::kNone, norm},
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
      {Op::MOE_GATE_TOPK, "n", {"dim:d", "dim:e", "dtype:gate_w", "dtype:x"}, Keys::kWeights, moe_gate_topk},
      {Op::MOE_GATE_UP,
       "n",
       {"dim:d", "dim:e", "dim:f", "dim:k", "dtype:gate_w", "dtype:up_w", "dtype:x", "pitch:gate_w", "pitch:up_w"},
       Keys::kWeights,
       moe_products},
      {Op::MOE_SWIGLU, "n", {"dim:f"}, Keys::kNone, wide},
      {Op::MOE_DOWN_ACC,
       "n",
       {"dim:f", "dim:e", "dim:d", "dim:k", "dtype:down_w", "dtype:x", "pitch:down_w"},
       Keys::kWeights,
       moe_down_acc},
      {Op::SHARED_EXPERT,
       "n",
       {"dim:d", "dim:f", "dtype:gate_w", "dtype:up_w", "dtype:down_w"},
       Keys::kWeights,
       shared_expert},
      {Op::SSM_CONV1D, nullptr, {"dim:c", "dim:n"}, Keys::kNone, conv1d},
      {Op::SSM_DELTA_NET, nullptr, {"dim:n"}, Keys::kNone, delta_net},
      {Op::SSM_GATED_NORM, "n", {"dim:d"}, Keys::kNone, norm},
      {Op::RESIDUAL_RMS_NORM, "n", {"dim:d"}, Keys::kNone, norm},
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
       moe_products},
      {Op::MOE_SUM, "n", {"dim:d", "dim:k", "dim:e"}, Keys::kNone, moe_sum},
      {Op::STATE_COPY, "n", {"dim:w"}, Keys::kNone, state_copy},
  };
  return ops;
}

namespace {

bool is_glu(const OpCall& c) {
  static_assert(offsetof(push::Glu, act) == offsetof(push::MoeSwiglu, act));
  return c.op == Op::GLU || c.op == Op::MOE_SWIGLU;
}
// hidden + y into hidden.
bool is_sum_of(const OpCall& first, const OpCall& add) {
  if (first.op != Op::LINEAR && first.op != Op::MOE_SUM) return false;
  const void* y = first.buffers[first.op == Op::LINEAR ? 3 : 4];
  return add.op == Op::ADD && first.rows_symbol == add.rows_symbol && add.buffers[1] == y &&
         add.buffers[2] == add.buffers[0] && add.buffers[0] != y;
}
// Whether the choices of a token are added to its hidden row by what normalizes that for q, k and v.
bool can_add_choices(const Planner& planner, const OpCall& sum, const void* hidden, const OpCall& qkv) {
  const std::uint32_t d = qkv.op == Op::RMS_NORM_FUSED_QKV ? qkv.symbols[0] : 1;
  return d % 4 == 0 && qkv.buffers[0] == hidden && sum.rows_symbol == qkv.rows_symbol && sum.rows() > 1 &&
         std::uint64_t{d} * 4 + norm_bytes(d) <= planner.most_shared();
}
// MOE_DOWN_ACC, or MOE_SUM and the ADD of its rows, and the norm, q, k and v of the next layer. How many packets; 0:
// the first is by itself.
std::size_t plan_choice_sum(Planner& planner, std::span<const OpCall> calls) {
  const OpCall& first = calls[0];
  const bool is_down = first.op == Op::MOE_DOWN_ACC;
  if (!is_down && (first.op != Op::MOE_SUM || !is_sum_of(first, calls[1]))) return 0;
  const std::size_t n = is_down ? 1 : 2;
  ChoiceSum sum = is_down ? down(planner, first) : sum_of(first);
  if (!is_down) sum.hidden = calls[1].buffers[0];
  if (calls.size() > n && can_add_choices(planner, first, sum.hidden, calls[n])) {
    qkv_after(planner, calls[n], &sum);
    return n + 1;
  }
  add_choices(planner, first, sum, first.symbols[is_down ? 2 : 0]);
  return n;
}
// Whether quantized rows lie apart from the first n inputs, rows of as many floats, of the op that wrote what they are
// made of. They may not, since that op alone would be done with its inputs by then; lower/alias.h keeps them apart.
bool is_apart(const OpCall& op, std::size_t n, const OpCall& quantize) {
  const std::uint64_t k = quantize.symbols[0], rows = op.rows();
  return std::ranges::all_of(std::span(op.buffers).first(n), [&](const void* from) {
    return are_apart(from, rows * k * 4, quantize.buffers[1], rows * row_bytes(quantize.dtype(1), k));
  });
}

// The first products of experts that the first call has chosen.
std::optional<ExpertProducts> products_of_choices(std::span<const OpCall> calls) {
  for (const OpCall& c : calls.subspan(1)) {
    if (c.op == Op::MOE_GATE_TOPK || c.rows_symbol != calls[0].rows_symbol) break;
    auto products = expert_products(c);
    if (products && products->experts.ids == calls[0].buffers[3]) return products;
  }
  return std::nullopt;
}

// The first n of the calls, of which the last is a QUANTIZE, by plan(digits); and if a product by digits reads its rows
// next, that too, with the ADD of its rows. How many packets that is.
template <class Plan>
std::size_t quantize_and_multiply(Planner& planner, std::span<const OpCall> calls, std::size_t n, const Plan& plan) {
  const OpCall& quantize = calls[n - 1];
  const OpCall* next = calls.size() > n ? &calls[n] : nullptr;
  const bool is_read = next != nullptr && next->op == Op::LINEAR && next->buffers[0] == quantize.buffers[1] &&
                       next->rows_symbol == quantize.rows_symbol && quantize.dtype(1) == DType::kQ8A256;
  const DigitRows digits =
      is_read ? digits_before(planner, *next, quantize.symbols[0], {matrix_of(*next)}) : DigitRows{};
  plan(digits);
  if (digits.columns == 0) return n;
  const bool is_sum = calls.size() > n + 1 && is_sum_of(*next, calls[n + 1]);
  linear_and(planner, *next, is_sum ? at<float>(calls[n + 1], 0) : nullptr, digits);
  return is_sum ? n + 2 : n + 1;
}

}  // namespace

std::size_t plan_packets(Planner& planner, std::span<const OpCall> calls) {
  const OpCall& first = calls[0];
  if (first.op == Op::MOE_GATE_TOPK) {
    choose_experts(planner, first, products_of_choices(calls));
    return 1;
  }
  if (calls.size() > 1) {
    const OpCall& second = calls[1];
    const bool same_rows = first.rows_symbol == second.rows_symbol;
    if (const std::size_t n = plan_choice_sum(planner, calls); n > 0) return n;
    if (is_sum_of(first, second)) {
      linear_and(planner, first, at<float>(second, 0));
      return 2;
    }
    const bool is_quantized = second.op == Op::QUANTIZE && same_rows;
    if (is_quantized && is_glu(first) && second.buffers[0] == first.buffers[2] && is_apart(first, 2, second)) {
      auto args = planner.args(first, second.symbols);
      args.buffers[3] = second.buffers[1];
      return quantize_and_multiply(planner, calls, 2, [&](const DigitRows& digits) {
        glu_quantize(planner, first, second.symbols[0], args, digits);
      });
    }
    const bool is_residual = first.op == Op::RESIDUAL_RMS_NORM;
    if (is_quantized && is_row_norm(first) && second.buffers[0] == first.buffers[is_residual ? 3 : 2] &&
        is_apart(first, is_residual ? 2 : 1, second)) {
      row_norm(planner, first, &second);
      return 2;
    }
    if (can_quantize(planner, first, second)) {
      return quantize_and_multiply(planner, calls, 2, [&](const DigitRows& digits) {
        plan_attention(planner, first, &second, nullptr, digits);
      });
    }
    if (can_write_cache(planner, second, first)) {
      const bool is_followed = calls.size() > 2 && can_quantize(planner, second, calls[2]);
      plan_attention(planner, second, is_followed ? &calls[2] : nullptr, &first);
      return is_followed ? 3 : 2;
    }
  }
  find_cuda_op(first.op)->plan(planner, first);
  return 1;
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
