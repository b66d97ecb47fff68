// Computes SSM_DELTA_NET, the gated delta rule, token by token (kernels/cpu/ssm_delta_net.cpp has the formulas). Each
// token continues the slot's state. Therefore the workgroups of a slot's first token compute all tokens of the slot in
// order, and the other workgroups return at once.
// Grid: (v heads, tiles of 32 columns of the state, tokens). Each workgroup is one wave. Each lane keeps one column of
// the state, of k_dim rows, in registers, because all sums of a column are its own. REQUIRES: tokens of one slot are
// neighbours, in the order of their positions.
#include "kernels/rdna/norm.h"

namespace zinc_rt::rdna {

constexpr uint32_t kRows = 16;  // rows of the state that are computed together

// Calls each(i) for the rows i of the state, up to k_dim rounded up to a multiple of kRows. Rows past k_dim are 0, and
// so are q and k there, so they change no result. The loops have fixed bounds and are unrolled, so that the state stays
// in registers.
template <class Each>
ZRT_DEVICE void each_row(uint32_t k_dim, const Each& each) {
#pragma unroll
  for (uint32_t first = 0; first < kMostStateRows; first += kRows)
    if (first < k_dim) {
#pragma unroll
      for (uint32_t i = first; i < first + kRows; ++i) each(i);
    }
}

}  // namespace zinc_rt::rdna

ZRT_KERNEL(ssm_delta_net, 32) {
  using namespace zinc_rt;
  using namespace zinc_rt::rdna;
  using Operand = operand::SsmDeltaNet;
  __shared__ float q[kMostStateRows], k[kMostStateRows];
  const auto c = constants<push::SsmDeltaNet>(args);
  const uint32_t n = dim(args, symbol::SsmDeltaNet::n), h = group(0), lane = thread(), column = group(1) * kWave + lane,
                 first = group(2);
  const int32_t *pos = buffer<const int32_t>(args, Operand::pos), *slot = buffer<const int32_t>(args, Operand::slot);
  if (first > 0 && slot[first - 1] == slot[first]) return;
  const bool is_column = column < c.v_dim;
  const uint32_t key_head = c.tiled != 0 ? h % c.n_k_heads : h / (c.n_v_heads / c.n_k_heads),
                 columns = 2 * c.n_k_heads * c.k_dim + c.n_v_heads * c.v_dim;
  float* stored = buffer<float>(args, Operand::state) +
                  ((uint64_t)(uint32_t)slot[first] * c.n_v_heads + h) * c.k_dim * c.v_dim + (is_column ? column : 0);
  float state[kMostStateRows];
  each_row(c.k_dim, [&](uint32_t i) { state[i] = i < c.k_dim ? stored[i * c.v_dim] : 0.0f; });
  const float q_scale = exact::rsqrt((float)c.k_dim);
  for (uint32_t t = first; t < n && slot[t] == slot[first]; ++t) {
    const float *x = buffer<const float>(args, Operand::x) + (uint64_t)t * columns, *xq = x + key_head * c.k_dim,
                *xk = xq + c.n_k_heads * c.k_dim, *v = x + 2 * c.n_k_heads * c.k_dim + h * c.v_dim;
    if (pos[t] == 0) each_row(c.k_dim, [&](uint32_t i) { state[i] = 0.0f; });
    const auto q_at = [&](uint32_t i) { return xq[i]; };
    const auto k_at = [&](uint32_t i) { return xk[i]; };
    const float rq = exact::rsqrt(wave_dot(q_at, q_at, c.k_dim) + c.eps),
                rk = exact::rsqrt(wave_dot(k_at, k_at, c.k_dim) + c.eps);
    workgroup_barrier();
    for (uint32_t i = lane; i < kMostStateRows; i += kWave) {
      q[i] = i < c.k_dim ? xq[i] * rq * q_scale : 0.0f;
      k[i] = i < c.k_dim ? xk[i] * rk : 0.0f;
    }
    workgroup_barrier();
    const uint64_t at = (uint64_t)t * c.n_v_heads + h;
    const float alpha = buffer<const float>(args, Operand::alpha)[at] + buffer<const float>(args, Operand::dt)[h];
    const float decay = exact::exp(buffer<const float>(args, Operand::a)[h] * exact::softplus(alpha));
    const float beta = exact::sigmoid(buffer<const float>(args, Operand::beta)[at]);
    float u = 0.0f, y = 0.0f;
    each_row(c.k_dim, [&](uint32_t i) {
      state[i] = state[i] * decay;
      u = __builtin_fmaf(k[i], state[i], u);
    });
    u = ((is_column ? v[column] : 0.0f) - u) * beta;
    each_row(c.k_dim, [&](uint32_t i) {
      state[i] = __builtin_fmaf(k[i], u, state[i]);
      y = __builtin_fmaf(q[i], state[i], y);
    });
    if (is_column) buffer<float>(args, Operand::y)[at * c.v_dim + column] = y;
  }
  each_row(c.k_dim, [&](uint32_t i) {
    if (is_column && i < c.k_dim) stored[i * c.v_dim] = state[i];
  });
}
