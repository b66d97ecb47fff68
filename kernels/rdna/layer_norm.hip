// Computes LAYER_NORM over whole rows: y = (x - mean) * r * w + b with r = rsqrt(variance + eps); b may be null
// (kernels/cpu/layer_norm.cpp defines it and the order of sums). Each workgroup computes one row. Its first wave
// computes the mean; then all threads compute the sum of squares (norm.h). In between, y holds x - mean.
#include "kernels/rdna/norm.h"

ZRT_KERNEL(layer_norm, 256) {
  using namespace zinc_rt;
  using namespace zinc_rt::rdna;
  using Operand = operand::LayerNorm;
  __shared__ float parts[kMostParts], mean_of_row;
  const uint32_t d = dim(args, symbol::Row::width);
  const uint64_t row = (uint64_t)group(0) * d;
  const float *x = buffer<const float>(args, Operand::x) + row, *w = buffer<const float>(args, Operand::w),
              *b = buffer<const float>(args, Operand::b);  // null without a bias
  float* y = buffer<float>(args, Operand::y) + row;
  const float inverse = constants<LayerNormConstants>(args).inverse;
  if (thread() < kWave) {
    float sum = 0.0f;
    for (uint32_t i = thread() % 16; i < d; i += 16) sum = sum + x[i];
    sum = fold_half(sum);
    if (thread() == 0) mean_of_row = sum * inverse;
  }
  workgroup_barrier();
  for (uint32_t i = thread(); i < d; i += 256) y[i] = x[i] - mean_of_row;
  workgroup_barrier();
  const float squares = workgroup_dot<256>(y, y, d, parts),
              r = exact::rsqrt(__builtin_fmaf(squares, inverse, constants<push::LayerNorm>(args).eps));
  for (uint32_t i = thread(); i < d; i += 256) {
    const float v = y[i] * r;
    y[i] = b != nullptr ? __builtin_fmaf(v, w[i], b[i]) : v * w[i];
  }
}
