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
// A token at position 0 begins with S = 0. Tokens of one slot are in order of their positions.
// Shapes: x [n, c], beta, alpha [n, n_v_heads], a, dt [n_v_heads], pos, slot [n],
//   state [s, n_v_heads, k_dim, v_dim], updated in place; y [n, n_v_heads * v_dim].
// Order of sums: |.|^2 by the float dot; k S and q S: for each column fma over the k_dim rows ascending from 0; tokens
//   in order (rule 8).
#include <algorithm>

#include "base/multiversion.h"
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/quant.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::SsmDeltaNet;
constexpr NameList kSymbols{"dim:n", "attr:k_dim", "attr:v_dim"};

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
  const std::uint32_t n = args.dim(kSymbols["dim:n"]), h = args.wg[0];
  const std::uint32_t key_head = c.tiled != 0 ? h % c.n_k_heads : h / (c.n_v_heads / c.n_k_heads);
  const std::uint32_t columns = 2 * c.n_k_heads * c.k_dim + c.n_v_heads * c.v_dim;
  const QuantFormat& f32 = *quant_format(DType::kF32);
  float *q = reinterpret_cast<float*>(args.lds), *k = q + c.k_dim, *u = k + c.k_dim;
  const auto step = args.set != nullptr && args.set->rows != nullptr ? args.set->rows->delta_step : delta_step;
  const float q_scale = exact::rsqrt(static_cast<float>(c.k_dim));
  for (std::uint32_t t = 0; t < n; ++t) {
    const float* x = args.buffer<const float>(Operand::x) + std::uint64_t{t} * columns;
    const float *xq = x + key_head * c.k_dim, *xk = xq + c.n_k_heads * c.k_dim,
                *v = x + 2 * c.n_k_heads * c.k_dim + h * c.v_dim;
    const auto slot = static_cast<std::uint64_t>(args.buffer<const std::int32_t>(Operand::slot)[t]);
    float* state = args.buffer<float>(Operand::state) + (slot * c.n_v_heads + h) * c.k_dim * c.v_dim;
    if (args.buffer<const std::int32_t>(Operand::pos)[t] == 0)
      std::fill_n(state, std::uint64_t{c.k_dim} * c.v_dim, 0.0f);
    const float rq = exact::rsqrt(f32.dot(xq, xq, c.k_dim) + c.eps),
                rk = exact::rsqrt(f32.dot(xk, xk, c.k_dim) + c.eps);
    for (std::uint32_t i = 0; i < c.k_dim; ++i) {
      q[i] = xq[i] * rq * q_scale;
      k[i] = xk[i] * rk;
    }
    const float alpha =
        args.buffer<const float>(Operand::alpha)[t * c.n_v_heads + h] + args.buffer<const float>(Operand::dt)[h];
    const float decay = exact::exp(args.buffer<const float>(Operand::a)[h] * exact::softplus(alpha));
    const float beta = exact::sigmoid(args.buffer<const float>(Operand::beta)[t * c.n_v_heads + h]);
    float* y = args.buffer<float>(Operand::y) + (std::uint64_t{t} * c.n_v_heads + h) * c.v_dim;
    step({q, k, v, decay, beta, c.k_dim, c.v_dim, state, u, y});
  }
}

}  // namespace

extern const CpuKernel kCpuKernel_ssm_delta_net;
const CpuKernel kCpuKernel_ssm_delta_net{
    "SSM_DELTA_NET", run, kSymbols, {{"n_v_heads"}, {}}, KeyTypes::kNone, [](const std::uint32_t* s) {
      return (std::uint64_t{s[kSymbols["attr:k_dim"]]} * 2 + s[kSymbols["attr:v_dim"]]) * 4;
    }};

}  // namespace zinc_rt::cpu
