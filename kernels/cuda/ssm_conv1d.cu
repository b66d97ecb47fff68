// SSM_CONV1D: a causal depthwise convolution, then silu. Its state is each slot's last `taps` inputs. The order of sums
// is that of kernels/cpu/ssm_conv1d.cpp, which also says what saved rows and guesses are.
// Grid: (tiles of channels, tokens). Each thread computes one channel. Only the workgroup of a slot's first token in
// this step works: it goes through all of the slot's tokens in order.
#include "kernels/common/state_run.h"
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
  const auto run = args.buffer<const zinc_rt::StateRun>(binding::SsmConv1d::runs)[slot[first]];
  const auto entry = [&](uint32_t i) {
    return args.buffer<float>(binding::SsmConv1d::state) + static_cast<uint64_t>(i) * c.taps * channels + ch;
  };
  float *stored = entry(slot[first]),
        *saved = args.buffer<float>(binding::SsmConv1d::saved) +
                 static_cast<uint64_t>(slot[first]) * args.dim(symbol::SsmConv1d::k) * channels + ch;
  // Adds an input to the stored state. Returns the sum before the activation.
  const auto apply = [&](float now) {
    float acc = w[0] * (c.taps > 0 ? stored[0] : now);
    for (uint32_t i = 1; i < c.width; ++i) {
      const float value = i < c.taps ? stored[static_cast<uint64_t>(i) * channels] : now;
      acc = __fmaf_rn(w[i], value, acc);
      stored[static_cast<uint64_t>(i - 1) * channels] = value;
    }
    return acc;
  };
  if (pos[first] == 0)
    for (uint32_t i = 0; i < c.taps; ++i) stored[static_cast<uint64_t>(i) * channels] = 0.0f;
  for (uint32_t i = 0; i < run.n_replayed; ++i) {
    apply(saved[static_cast<uint64_t>(i) * channels]);
    if (static_cast<uint32_t>(pos[first]) - run.n_replayed + i + 1 == run.save_at)
      for (uint32_t j = 0; j < c.taps; ++j)
        entry(run.save_to)[static_cast<uint64_t>(j) * channels] = stored[static_cast<uint64_t>(j) * channels];
  }
  const float* x = args.buffer<const float>(binding::SsmConv1d::x) + ch;
  for (uint32_t t = first; t < n && slot[t] == slot[first]; ++t) {
    const float now = x[static_cast<uint64_t>(t) * channels];
    float acc;
    if (t - first < run.n_certain) {
      acc = apply(now);
    } else {
      // The inputs before a guess are the stored state, then the guesses before it.
      const uint32_t guess = t - first - run.n_certain;
      acc = 0.0f;
      for (uint32_t i = 0; i < c.width; ++i) {
        const uint32_t at = i + guess;
        const float value = at < c.taps ? stored[static_cast<uint64_t>(at) * channels]
                                        : x[static_cast<uint64_t>(t + i - c.taps) * channels];
        acc = i == 0 ? w[0] * value : __fmaf_rn(w[i], value, acc);
      }
      saved[static_cast<uint64_t>(guess) * channels] = now;
    }
    args.buffer<float>(binding::SsmConv1d::y)[static_cast<uint64_t>(t) * channels + ch] = exact::silu(acc);
  }
}
