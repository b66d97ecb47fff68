// SSM_DELTA_NET: the gated delta rule, token by token. The order of sums is that of kernels/cpu/ssm_delta_net.cpp.
// Grid: (v heads, tokens). Only the workgroup of a slot's first token in this step works: it goes through all of the
// slot's tokens in order. Each thread computes one column of the head's state [k_dim, v_dim].
// Shared memory, in floats: the state (k_dim * v_dim), q and k of the token (2 * k_dim), and the sums of squares of q
// and k per group of 256.
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void ssm_delta_net(const __grid_constant__ OpArgs args) {
  ZRT_DYNAMIC_SHARED(float, shared);
  wait_for_inputs();
  let_next_start();
  const auto c = args.constants<push::SsmDeltaNet>();
  const uint32_t n = args.dim(symbol::Rows::rows), h = blockIdx.x, first = blockIdx.y, tid = threadIdx.x;
  const int32_t *pos = args.buffer<const int32_t>(binding::SsmDeltaNet::pos),
                *slot = args.buffer<const int32_t>(binding::SsmDeltaNet::slot);
  if (first >= n || (first > 0 && slot[first - 1] == slot[first])) return;
  const uint32_t key_head = c.tiled != 0 ? h % c.n_k_heads : h / (c.n_v_heads / c.n_k_heads);
  const uint32_t columns = 2 * c.n_k_heads * c.k_dim + c.n_v_heads * c.v_dim, parts = (c.k_dim + 255) / 256;
  float *state = shared, *q = state + c.k_dim * c.v_dim, *k = q + c.k_dim, *squares = k + c.k_dim;
  float* stored = args.buffer<float>(binding::SsmDeltaNet::state) +
                  (static_cast<uint64_t>(slot[first]) * c.n_v_heads + h) * c.k_dim * c.v_dim;
  for (uint32_t i = tid; i < c.k_dim * c.v_dim; i += blockDim.x) state[i] = stored[i];
  const float q_scale = exact::rsqrt(static_cast<float>(c.k_dim));
  for (uint32_t t = first; t < n && slot[t] == slot[first]; ++t) {
    const float* x = args.buffer<const float>(binding::SsmDeltaNet::x) + static_cast<uint64_t>(t) * columns;
    const float *xq = x + key_head * c.k_dim, *xk = xq + c.n_k_heads * c.k_dim,
                *v = x + 2 * c.n_k_heads * c.k_dim + h * c.v_dim;
    __syncthreads();
    if (pos[t] == 0)
      for (uint32_t i = tid; i < c.k_dim * c.v_dim; i += blockDim.x) state[i] = 0.0f;
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
    const uint64_t at = static_cast<uint64_t>(t) * c.n_v_heads + h;
    const float alpha = args.buffer<const float>(binding::SsmDeltaNet::alpha)[at] +
                        args.buffer<const float>(binding::SsmDeltaNet::dt)[h];
    const float decay = exact::exp(args.buffer<const float>(binding::SsmDeltaNet::a)[h] * exact::softplus(alpha));
    const float beta = exact::sigmoid(args.buffer<const float>(binding::SsmDeltaNet::beta)[at]);
    __syncthreads();
    for (uint32_t j = tid; j < c.v_dim; j += blockDim.x) {
      float u = 0.0f, y = 0.0f;
      for (uint32_t i = 0; i < c.k_dim; ++i) {
        const float s = state[i * c.v_dim + j] * decay;
        state[i * c.v_dim + j] = s;
        u = __fmaf_rn(k[i], s, u);
      }
      u = (v[j] - u) * beta;
      for (uint32_t i = 0; i < c.k_dim; ++i) {
        const float s = __fmaf_rn(k[i], u, state[i * c.v_dim + j]);
        state[i * c.v_dim + j] = s;
        y = __fmaf_rn(q[i], s, y);
      }
      args.buffer<float>(binding::SsmDeltaNet::y)[at * c.v_dim + j] = y;
    }
  }
  __syncthreads();
  for (uint32_t i = tid; i < c.k_dim * c.v_dim; i += blockDim.x) stored[i] = state[i];
}
