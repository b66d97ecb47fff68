// Computes SSM_CONV1D, a causal depthwise convolution and silu: y[t][c] = silu(sum over i of w[c][i] * x[t - width + 1
// + i][c]) (defined by kernels/cpu/ssm_conv1d.cpp). The inputs before the present token come from the slot's state.
// Therefore the workgroups of a slot's first token compute all tokens of the slot in order, and the other workgroups
// return at once.
// Grid: (tiles of 256 channels, tokens). Each thread computes one channel. REQUIRES: tokens of one slot are neighbours,
// in the order of their positions.
#include "kernels/rdna/device.h"

ZRT_KERNEL(ssm_conv1d, 256) {
  using namespace zinc_rt;
  using namespace zinc_rt::rdna;
  using Operand = operand::SsmConv1d;
  const auto c = constants<push::SsmConv1d>(args);
  const uint32_t n = dim(args, symbol::SsmConv1d::n), ch = group(0) * 256 + thread(), first = group(1);
  const uint64_t channels = dim(args, symbol::SsmConv1d::c);
  const int32_t *pos = buffer<const int32_t>(args, Operand::pos), *slot = buffer<const int32_t>(args, Operand::slot);
  if (ch >= channels || (first > 0 && slot[first - 1] == slot[first])) return;
  const float *x = buffer<const float>(args, Operand::x) + ch,
              *w = buffer<const float>(args, Operand::conv_w) + (uint64_t)ch * c.width;
  float *state = buffer<float>(args, Operand::state) + (uint32_t)slot[first] * c.taps * channels + ch,
        *y = buffer<float>(args, Operand::y) + ch;
  for (uint32_t t = first; t < n && slot[t] == slot[first]; ++t) {
    if (pos[t] == 0)
      for (uint32_t i = 0; i < c.taps; ++i) state[i * channels] = 0.0f;
    const float now = x[t * channels];
    float acc = w[0] * (c.taps > 0 ? state[0] : now);
    for (uint32_t i = 1; i < c.width; ++i) {
      const float value = i < c.taps ? state[i * channels] : now;
      acc = __builtin_fmaf(w[i], value, acc);
      state[(i - 1) * channels] = value;
    }
    y[t * channels] = exact::silu(acc);
  }
}
