// Computes ROPE: rotates pairs of the first n_rot values of each head by the angle of the token's position, and copies
// the other values (kernels/cpu/rope.cpp has the formulas). A position outside the table gives a row of NaN. Each
// workgroup computes one token's row.
#include "kernels/rdna/device.h"

ZRT_KERNEL(rope, 256) {
  using namespace zinc_rt;
  using Operand = operand::Rope;
  const uint32_t d = rdna::dim(args, rdna::symbol::Rope::d), rows = rdna::dim(args, rdna::symbol::Rope::p),
                 t = rdna::group(0);
  const auto c = rdna::constants<push::Rope>(args);
  const auto pos = (uint32_t)rdna::buffer<const int32_t>(args, Operand::pos)[t];
  const float* x = rdna::buffer<const float>(args, Operand::x) + (uint64_t)t * d;
  const float* table = rdna::buffer<const float>(args, Operand::table) + (uint64_t)(pos < rows ? pos : 0) * c.n_rot;
  float* y = rdna::buffer<float>(args, Operand::y) + (uint64_t)t * d;
  if (pos >= rows) {
    for (uint32_t i = rdna::thread(); i < d; i += 256) y[i] = rdna::quiet_nan();
    return;
  }
  const uint32_t half = c.n_rot / 2;
  for (uint32_t h = 0; h < d; h += c.head_dim) {
    for (uint32_t i = rdna::thread(); i < half; i += 256) {
      const uint32_t first = h + (c.neox != 0 ? i : 2 * i), second = h + (c.neox != 0 ? i + half : 2 * i + 1);
      const float a = x[first], b = x[second], cosine = table[2 * i], sine = table[2 * i + 1];
      y[first] = __builtin_fmaf(-b, sine, a * cosine);
      y[second] = __builtin_fmaf(b, cosine, a * sine);
    }
    for (uint32_t i = c.n_rot + rdna::thread(); i < c.head_dim; i += 256) y[h + i] = x[h + i];
  }
}
