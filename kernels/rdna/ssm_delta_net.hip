// Computes SSM_DELTA_NET, the gated delta rule, token by token. kernels/cpu/ssm_delta_net.cpp has the formulas, and says
// what saved rows and guesses are. Each token continues the slot's state. Therefore the workgroups of a slot's first
// token compute all tokens of the slot in order, and the other workgroups return at once.
// Grid: (v heads, tiles of 32 columns of the state, tokens). Each workgroup is one wave. Each lane keeps one column of
// the state, of k_dim rows, in registers, because all sums of a column are its own. REQUIRES: tokens of one slot are
// neighbours, in the order of their positions.
#include "kernels/common/state_run.h"
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
  const uint32_t head_group = c.n_v_heads / c.n_k_heads, key_head = c.tiled != 0 ? h % c.n_k_heads : h / head_group,
                 keys = c.n_k_heads * c.k_dim, columns = 2 * keys + c.n_v_heads * c.v_dim;
  // Several workgroups read the same key head. The first of them saves its q and k.
  const bool saves_key = group(1) == 0 && (c.tiled != 0 ? h < c.n_k_heads : h % head_group == 0);
  const StateRun run = buffer<const StateRun>(args, Operand::runs)[(uint32_t)slot[first]];
  float state[kMostStateRows];
  // All lambdas are inlined, because `state` would lie in memory otherwise.
  const auto entry = [&](uint32_t i) __attribute__((always_inline)) {
    return buffer<float>(args, Operand::state) + ((uint64_t)i * c.n_v_heads + h) * c.k_dim * c.v_dim +
           (is_column ? column : 0);
  };
  const auto store = [&](float* to) __attribute__((always_inline)) {
    // The pitch is hidden from the compiler. It would keep the addresses of all rows in registers otherwise, since they
    // are the same for each token, and would have to spill them.
    uint32_t pitch = c.v_dim;
    asm volatile("" : "+s"(pitch));
    each_row(c.k_dim, [&](uint32_t i) {
      if (is_column && i < c.k_dim) to[i * pitch] = state[i];
    });
  };
  const auto saved = [&](uint32_t half, uint32_t i) __attribute__((always_inline)) {
    return buffer<float>(args, Operand::saved) +
           (((uint64_t)(uint32_t)slot[first] * 2 + half) * dim(args, symbol::SsmDeltaNet::k) + i) *
               (columns + 2 * c.n_v_heads);
  };
  const float* stored = entry((uint32_t)slot[first]);
  const bool is_new = pos[first] == 0;
  each_row(c.k_dim, [&](uint32_t i) { state[i] = i < c.k_dim && !is_new ? stored[i * c.v_dim] : 0.0f; });
  const float q_scale = exact::rsqrt((float)c.k_dim);
  // Applies a token to the state, and returns this lane's value of y.
  const auto apply = [&](const float* x, float raw_beta, float raw_alpha) __attribute__((always_inline)) {
    const float *xq = x + key_head * c.k_dim, *xk = xq + keys, *v = x + 2 * keys + h * c.v_dim;
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
    const float alpha = raw_alpha + buffer<const float>(args, Operand::dt)[h];
    const float decay = exact::exp(buffer<const float>(args, Operand::a)[h] * exact::softplus(alpha));
    const float beta = exact::sigmoid(raw_beta);
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
    return y;
  };
  // Replayed rows and rows of this step go through the same code, so that it is inlined once.
  uint32_t n_rows = 0;
  while (first + n_rows < n && slot[first + n_rows] == slot[first]) ++n_rows;
  for (uint32_t i = 0; i < run.n_replayed + n_rows; ++i) {
    const bool is_replayed = i < run.n_replayed;
    const uint32_t row = is_replayed ? i : i - run.n_replayed, t = first + row;
    const float *kept = saved(run.half, is_replayed ? row : 0),
                *x = is_replayed ? kept : buffer<const float>(args, Operand::x) + (uint64_t)t * columns;
    const uint64_t at = (uint64_t)t * c.n_v_heads + h;
    const float beta = is_replayed ? kept[columns + h] : buffer<const float>(args, Operand::beta)[at],
                alpha = is_replayed ? kept[columns + c.n_v_heads + h] : buffer<const float>(args, Operand::alpha)[at];
    if (!is_replayed && row == run.n_certain) store(entry((uint32_t)slot[first]));
    if (!is_replayed && row >= run.n_certain) {
      float* to = saved(1 - run.half, row - run.n_certain);
      for (uint32_t j = lane; saves_key && j < c.k_dim; j += kWave) {
        const uint32_t at_q = key_head * c.k_dim + j;
        to[at_q] = x[at_q];
        to[keys + at_q] = x[keys + at_q];
      }
      if (is_column) to[2 * keys + h * c.v_dim + column] = x[2 * keys + h * c.v_dim + column];
      if (group(1) == 0 && lane == 0) {
        to[columns + h] = beta;
        to[columns + c.n_v_heads + h] = alpha;
      }
    }
    const float y = apply(x, beta, alpha);
    if (is_replayed) {
      if ((uint32_t)pos[first] - run.n_replayed + i + 1 == run.save_at) store(entry(run.save_to));
    } else if (is_column) {
      buffer<float>(args, Operand::y)[at * c.v_dim + column] = y;
    }
  }
  if (n_rows <= run.n_certain) store(entry((uint32_t)slot[first]));
}
