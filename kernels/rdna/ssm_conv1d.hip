// Computes SSM_CONV1D, a causal depthwise convolution and silu: y[t][c] = silu(sum over i of w[c][i] * x[t - width + 1
// + i][c]). kernels/cpu/ssm_conv1d.cpp defines it, and says what saved rows and guesses are. The inputs before the
// present token come from the slot's state. Therefore the workgroups of a slot's first token compute all tokens of the
// slot in order, and the other workgroups return at once.
// Grid: (tiles of 256 channels, tokens). Each thread computes one channel. REQUIRES: tokens of one slot are neighbours,
// in the order of their positions.
#include "kernels/common/state_run.h"
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
  const StateRun run = buffer<const StateRun>(args, Operand::runs)[(uint32_t)slot[first]];
  const auto entry = [&](uint32_t i) { return buffer<float>(args, Operand::state) + i * c.taps * channels + ch; };
  float *stored = entry((uint32_t)slot[first]), *y = buffer<float>(args, Operand::y) + ch,
        *saved = buffer<float>(args, Operand::saved) +
                 (uint32_t)slot[first] * dim(args, symbol::SsmConv1d::k) * channels + ch;
  // Adds an input to the stored state. Returns the sum before the activation.
  const auto apply = [&](float now) {
    float acc = w[0] * (c.taps > 0 ? stored[0] : now);
    for (uint32_t i = 1; i < c.width; ++i) {
      const float value = i < c.taps ? stored[i * channels] : now;
      acc = __builtin_fmaf(w[i], value, acc);
      stored[(i - 1) * channels] = value;
    }
    return acc;
  };
  if (pos[first] == 0)
    for (uint32_t i = 0; i < c.taps; ++i) stored[i * channels] = 0.0f;
  for (uint32_t i = 0; i < run.n_replayed; ++i) {
    apply(saved[i * channels]);
    if ((uint32_t)pos[first] - run.n_replayed + i + 1 == run.save_at)
      for (uint32_t j = 0; j < c.taps; ++j) entry(run.save_to)[j * channels] = stored[j * channels];
  }
  for (uint32_t t = first; t < n && slot[t] == slot[first]; ++t) {
    const float now = x[t * channels];
    float acc = 0.0f;
    if (t - first < run.n_certain) {
      acc = apply(now);
    } else {
      // The inputs before a guess are the stored state, then the guesses before it.
      const uint32_t guess = t - first - run.n_certain;
      for (uint32_t i = 0; i < c.width; ++i) {
        const float value = i + guess < c.taps ? stored[(i + guess) * channels] : x[(t + i - c.taps) * channels];
        acc = i == 0 ? w[0] * value : __builtin_fmaf(w[i], value, acc);
      }
      saved[guess * channels] = now;
    }
    y[t * channels] = exact::silu(acc);
  }
}
