// This is the CPU reference kernel of the op SSM_DELTA_NET. It computes the gated delta rule, head by head and token by
// token. A row of x is [q | k | v] of a token after the convolution, with q, k [n_k_heads, k_dim] and v [n_v_heads,
// v_dim]. v head h reads key head h mod n_k_heads (tiled = 1) or h / (n_v_heads / n_k_heads) (tiled = 0). For each v
// head, with S its state [k_dim, v_dim]:
//   q = q / |q| / sqrt(k_dim), k = k / |k|, where |.|^2 has eps added
//   g = exp(a[h] * softplus(alpha + dt[h]))
//   b = sigmoid(beta)
//   S = g S
//   u = (v - k S) b
//   S = S + k u^T
//   y = q S
// A token at position 0 begins with S = 0. Tokens of one slot are neighbours, in order of their positions.
// Guesses (kernels/common/state_run.h): first, runs[slot].n_replayed saved rows are applied to S. Then the slot's first
// n_certain rows change S. The rows after them are guesses: they are applied to a copy of S, and are saved, row j behind
// the certain ones as saved[slot][1 - half][j]. A saved row is [x | beta | alpha] of a token.
// Shapes: x [n, c], beta, alpha [n, n_v_heads], a, dt [n_v_heads], pos, slot [n], state [s, n_v_heads, k_dim, v_dim],
//   updated in place; runs [slots, 5]; saved [slots, 2 halves, k, c + 2 * n_v_heads]; y [n, n_v_heads * v_dim].
// Order of sums: |.|^2 by the float dot; k S and q S: for each column fma over the k_dim rows ascending from 0; tokens
//   in order (rule 8).
#include <algorithm>

#include "base/multiversion.h"
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/common/state_run.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/quant.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::SsmDeltaNet;
constexpr NameList kSymbols{"dim:n", "dim:k", "attr:k_dim", "attr:v_dim"};

ZRT_MULTIVERSION void delta_step(const DeltaStep& step) {
  const std::uint32_t k_dim = step.k_dim, v_dim = step.v_dim;
  const float decay = step.decay, beta = step.beta, *q = step.q, *k = step.k, *v = step.v;
  float* __restrict u = step.u;
  float* __restrict y = step.y;
  std::fill_n(u, v_dim, 0.0f);
  for (std::uint32_t i = 0; i < k_dim; ++i) {
    float* __restrict row = step.state + i * v_dim;
    for (std::uint32_t j = 0; j < v_dim; ++j) {
      row[j] = row[j] * decay;
      u[j] = __builtin_fmaf(k[i], row[j], u[j]);
    }
  }
  for (std::uint32_t j = 0; j < v_dim; ++j) u[j] = (v[j] - u[j]) * beta;
  std::fill_n(y, v_dim, 0.0f);
  for (std::uint32_t i = 0; i < k_dim; ++i) {
    float* __restrict row = step.state + i * v_dim;
    for (std::uint32_t j = 0; j < v_dim; ++j) {
      row[j] = __builtin_fmaf(k[i], u[j], row[j]);
      y[j] = __builtin_fmaf(q[i], row[j], y[j]);
    }
  }
}

void run(const CpuArgs& args) {
  const auto& c = args.constants<push::SsmDeltaNet>();
  const std::uint32_t n = args.dim(kSymbols["dim:n"]), n_saved = args.dim(kSymbols["dim:k"]), h = args.wg[0];
  const std::uint32_t group = c.n_v_heads / c.n_k_heads, key_head = c.tiled != 0 ? h % c.n_k_heads : h / group;
  // Several v heads read the same key head. The first of them saves its q and k.
  const bool saves_key = c.tiled != 0 ? h < c.n_k_heads : h % group == 0;
  const std::uint32_t keys = c.n_k_heads * c.k_dim, columns = 2 * keys + c.n_v_heads * c.v_dim;
  const std::uint64_t state_size = std::uint64_t{c.k_dim} * c.v_dim;
  const QuantFormat& f32 = *quant_format(DType::kF32);
  float *q = reinterpret_cast<float*>(args.lds), *k = q + c.k_dim, *u = k + c.k_dim, *unused = u + c.v_dim,
        *guessed = unused + c.v_dim;
  const auto step = args.set != nullptr && args.set->rows != nullptr ? args.set->rows->delta_step : delta_step;
  const float q_scale = exact::rsqrt(static_cast<float>(c.k_dim));
  const auto *pos = args.buffer<const std::int32_t>(Operand::pos),
             *slots = args.buffer<const std::int32_t>(Operand::slot);
  const auto entry = [&](std::uint64_t i) {
    return args.buffer<float>(Operand::state) + (i * c.n_v_heads + h) * state_size;
  };
  const auto apply = [&](const float* x, float raw_beta, float raw_alpha, float* state, float* y) {
    const float *xq = x + key_head * c.k_dim, *xk = xq + keys, *v = x + 2 * keys + h * c.v_dim;
    const float rq = exact::rsqrt(f32.dot(xq, xq, c.k_dim) + c.eps),
                rk = exact::rsqrt(f32.dot(xk, xk, c.k_dim) + c.eps);
    for (std::uint32_t i = 0; i < c.k_dim; ++i) {
      q[i] = xq[i] * rq * q_scale;
      k[i] = xk[i] * rk;
    }
    const float alpha = raw_alpha + args.buffer<const float>(Operand::dt)[h];
    const float decay = exact::exp(args.buffer<const float>(Operand::a)[h] * exact::softplus(alpha));
    step({q, k, v, decay, exact::sigmoid(raw_beta), c.k_dim, c.v_dim, state, u, y});
  };
  for (std::uint32_t t = 0; t < n;) {
    const auto slot = static_cast<std::uint64_t>(slots[t]);
    const StateRun& of = args.buffer<const StateRun>(Operand::runs)[slot];
    const auto saved = [&](std::uint64_t half, std::uint64_t i) {
      return args.buffer<float>(Operand::saved) + ((slot * 2 + half) * n_saved + i) * (columns + 2 * c.n_v_heads);
    };
    float* state = entry(slot);
    if (pos[t] == 0) std::fill_n(state, state_size, 0.0f);
    for (std::uint32_t i = 0; i < of.n_replayed; ++i) {
      const float* row = saved(of.half, i);
      apply(row, row[columns + h], row[columns + c.n_v_heads + h], state, unused);
      if (static_cast<std::uint32_t>(pos[t]) - of.n_replayed + i + 1 == of.save_at)
        std::copy_n(state, state_size, entry(of.save_to));
    }
    for (std::uint32_t i = 0; t < n && static_cast<std::uint64_t>(slots[t]) == slot; ++i, ++t) {
      const float* x = args.buffer<const float>(Operand::x) + std::uint64_t{t} * columns;
      const std::uint64_t at = std::uint64_t{t} * c.n_v_heads + h;
      const float beta = args.buffer<const float>(Operand::beta)[at],
                  alpha = args.buffer<const float>(Operand::alpha)[at];
      if (i >= of.n_certain) {
        float* row = saved(1 - of.half, i - of.n_certain);
        if (saves_key)
          for (const std::uint32_t first : {key_head * c.k_dim, keys + key_head * c.k_dim})
            std::copy_n(x + first, c.k_dim, row + first);
        std::copy_n(x + 2 * keys + h * c.v_dim, c.v_dim, row + 2 * keys + h * c.v_dim);
        row[columns + h] = beta;
        row[columns + c.n_v_heads + h] = alpha;
      }
      if (i == of.n_certain) state = std::copy_n(state, state_size, guessed) - state_size;
      apply(x, beta, alpha, state, args.buffer<float>(Operand::y) + at * c.v_dim);
    }
  }
}

}  // namespace

extern const CpuKernel kCpuKernel_ssm_delta_net;
const CpuKernel kCpuKernel_ssm_delta_net{
    "SSM_DELTA_NET", run, kSymbols, {{"n_v_heads"}, {}}, KeyTypes::kNone, [](const std::uint32_t* s) {
      const std::uint64_t k_dim = s[kSymbols["attr:k_dim"]], v_dim = s[kSymbols["attr:v_dim"]];
      return (2 * k_dim + 2 * v_dim + k_dim * v_dim) * sizeof(float);
    }};

}  // namespace zinc_rt::cpu
