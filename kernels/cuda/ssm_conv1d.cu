// SSM_CONV1D: a causal depthwise convolution, then silu. Its state is each slot's last `taps` inputs. The order of sums
// is that of kernels/cpu/ssm_conv1d.cpp.
// Grid: (tiles of channels, tokens). Each thread computes one channel. Only the workgroup of a slot's first token in
// this step works: it goes through all of the slot's tokens in order.
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void ssm_conv1d(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const auto c = args.constants<push::SsmConv1d>();
  const uint32_t n = args.dim(symbol::SsmConv1d::rows), channels = args.dim(symbol::SsmConv1d::c),
                 ch = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y;
  const int32_t *pos = args.buffer<const int32_t>(binding::SsmConv1d::pos),
                *slot = args.buffer<const int32_t>(binding::SsmConv1d::slot);
  if (first >= n || ch >= channels || (first > 0 && slot[first - 1] == slot[first])) return;
  const float* w = args.buffer<const float>(binding::SsmConv1d::conv_w) + static_cast<uint64_t>(ch) * c.width;
  float* state =
      args.buffer<float>(binding::SsmConv1d::state) + static_cast<uint64_t>(slot[first]) * c.taps * channels + ch;
  for (uint32_t t = first; t < n && slot[t] == slot[first]; ++t) {
    if (pos[t] == 0)
      for (uint32_t i = 0; i < c.taps; ++i) state[static_cast<uint64_t>(i) * channels] = 0.0f;
    const float now = args.buffer<const float>(binding::SsmConv1d::x)[static_cast<uint64_t>(t) * channels + ch];
    float acc = w[0] * (c.taps > 0 ? state[0] : now);
    for (uint32_t i = 1; i < c.width; ++i)
      acc = __fmaf_rn(w[i], i < c.taps ? state[static_cast<uint64_t>(i) * channels] : now, acc);
    for (uint32_t i = 0; i + 1 < c.taps; ++i)
      state[static_cast<uint64_t>(i) * channels] = state[static_cast<uint64_t>(i + 1) * channels];
    if (c.taps > 0) state[static_cast<uint64_t>(c.taps - 1) * channels] = now;
    args.buffer<float>(binding::SsmConv1d::y)[static_cast<uint64_t>(t) * channels + ch] = exact::silu(acc);
  }
}
