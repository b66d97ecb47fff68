// SSM_DELTA_NET: the gated delta rule, token by token. The order of sums is that of kernels/cpu/ssm_delta_net.cpp, which
// also says what saved rows and guesses are.
// Grid: (v heads, tokens). Only the workgroup of a slot's first token in this step works: it goes through all of the
// slot's tokens in order. Each thread computes one column of the head's state [k_dim, v_dim].
// Shared memory, in floats: the state (k_dim * v_dim), q and k of the token (2 * k_dim), and the sums of squares of q
// and k per group of 256.
#include "kernels/common/state_run.h"
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void ssm_delta_net(const __grid_constant__ OpArgs args) {
  ZRT_DYNAMIC_SHARED(float, shared);
  wait_for_inputs();
  let_next_start();
  const auto c = args.constants<push::SsmDeltaNet>();
  const uint32_t n = args.dim(symbol::SsmDeltaNet::rows), h = blockIdx.x, first = blockIdx.y, tid = threadIdx.x;
  const int32_t *pos = args.buffer<const int32_t>(binding::SsmDeltaNet::pos),
                *slot = args.buffer<const int32_t>(binding::SsmDeltaNet::slot);
  if (first >= n || (first > 0 && slot[first - 1] == slot[first])) return;
  const uint32_t group = c.n_v_heads / c.n_k_heads, key_head = c.tiled != 0 ? h % c.n_k_heads : h / group;
  // Several v heads read the same key head. The first of them saves its q and k.
  const bool saves_key = c.tiled != 0 ? h < c.n_k_heads : h % group == 0;
  const uint32_t keys = c.n_k_heads * c.k_dim, columns = 2 * keys + c.n_v_heads * c.v_dim,
                 parts = (c.k_dim + 255) / 256;
  float *state = shared, *q = state + c.k_dim * c.v_dim, *k = q + c.k_dim, *squares = k + c.k_dim;
  const auto entry = [&](uint32_t i) {
    return args.buffer<float>(binding::SsmDeltaNet::state) +
           (static_cast<uint64_t>(i) * c.n_v_heads + h) * c.k_dim * c.v_dim;
  };
  const auto store = [&](float* to) {
    __syncthreads();
    for (uint32_t i = tid; i < c.k_dim * c.v_dim; i += blockDim.x) to[i] = state[i];
  };
  const auto run = args.buffer<const zinc_rt::StateRun>(binding::SsmDeltaNet::runs)[slot[first]];
  const auto saved = [&](uint32_t half, uint32_t i) {
    return args.buffer<float>(binding::SsmDeltaNet::saved) +
           ((static_cast<uint64_t>(slot[first]) * 2 + half) * args.dim(symbol::SsmDeltaNet::k) + i) *
               (columns + 2 * c.n_v_heads);
  };
  const float* stored = entry(slot[first]);
  const bool is_new = pos[first] == 0;
  for (uint32_t i = tid; i < c.k_dim * c.v_dim; i += blockDim.x) state[i] = is_new ? 0.0f : stored[i];
  const float q_scale = exact::rsqrt(static_cast<float>(c.k_dim));
  // Applies a token to the state. y: the token's result; null: nobody wants it.
  const auto apply = [&](const float* x, float raw_beta, float raw_alpha, float* y) {
    const float *xq = x + key_head * c.k_dim, *xk = xq + keys, *v = x + 2 * keys + h * c.v_dim;
    __syncthreads();
    for (uint32_t i = tid / 16; i < 2 * parts; i += blockDim.x / 16) {
      const uint32_t begin = i % parts * 256;
      const float sum = square_group((i < parts ? xq : xk) + begin, min(256u, c.k_dim - begin));
      if (tid % 16 == 0) squares[i] = sum;
    }
    __syncthreads();
    float sum_q = 0.0f, sum_k = 0.0f;
    for (uint32_t i = 0; i < parts; ++i) sum_q = sum_q + squares[i], sum_k = sum_k + squares[parts + i];
    const float rq = exact::rsqrt(sum_q + c.eps), rk = exact::rsqrt(sum_k + c.eps);
    for (uint32_t i = tid; i < c.k_dim; i += blockDim.x) q[i] = xq[i] * rq * q_scale, k[i] = xk[i] * rk;
    const float alpha = raw_alpha + args.buffer<const float>(binding::SsmDeltaNet::dt)[h];
    const float decay = exact::exp(args.buffer<const float>(binding::SsmDeltaNet::a)[h] * exact::softplus(alpha));
    const float beta = exact::sigmoid(raw_beta);
    __syncthreads();
    for (uint32_t j = tid; j < c.v_dim; j += blockDim.x) {
      float u = 0.0f, sum = 0.0f;
      for (uint32_t i = 0; i < c.k_dim; ++i) {
        const float s = state[i * c.v_dim + j] * decay;
        state[i * c.v_dim + j] = s;
        u = __fmaf_rn(k[i], s, u);
      }
      u = (v[j] - u) * beta;
      for (uint32_t i = 0; i < c.k_dim; ++i) {
        const float s = __fmaf_rn(k[i], u, state[i * c.v_dim + j]);
        state[i * c.v_dim + j] = s;
        sum = __fmaf_rn(q[i], s, sum);
      }
      if (y != nullptr) y[j] = sum;
    }
  };
  for (uint32_t i = 0; i < run.n_replayed; ++i) {
    const float* row = saved(run.half, i);
    apply(row, row[columns + h], row[columns + c.n_v_heads + h], nullptr);
    if (static_cast<uint32_t>(pos[first]) - run.n_replayed + i + 1 == run.save_at) store(entry(run.save_to));
  }
  uint32_t t = first;
  for (; t < n && slot[t] == slot[first]; ++t) {
    const float* x = args.buffer<const float>(binding::SsmDeltaNet::x) + static_cast<uint64_t>(t) * columns;
    const uint64_t at = static_cast<uint64_t>(t) * c.n_v_heads + h;
    const float beta = args.buffer<const float>(binding::SsmDeltaNet::beta)[at],
                alpha = args.buffer<const float>(binding::SsmDeltaNet::alpha)[at];
    if (t - first == run.n_certain) store(entry(slot[first]));
    if (t - first >= run.n_certain) {
      float* row = saved(1 - run.half, t - first - run.n_certain);
      if (saves_key)
        for (uint32_t i = tid; i < c.k_dim; i += blockDim.x) {
          const uint32_t at_q = key_head * c.k_dim + i;
          row[at_q] = x[at_q], row[keys + at_q] = x[keys + at_q];
        }
      for (uint32_t j = tid; j < c.v_dim; j += blockDim.x) {
        const uint32_t at_v = 2 * keys + h * c.v_dim + j;
        row[at_v] = x[at_v];
      }
      if (tid == 0) row[columns + h] = beta, row[columns + c.n_v_heads + h] = alpha;
    }
    apply(x, beta, alpha, args.buffer<float>(binding::SsmDeltaNet::y) + at * c.v_dim);
  }
  if (t - first <= run.n_certain) store(entry(slot[first]));
}
