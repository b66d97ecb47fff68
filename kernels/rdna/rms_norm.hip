// Computes RMS_NORM, RESIDUAL_RMS_NORM and SSM_GATED_NORM, and the QUANTIZE of the normalized rows. In each group of
// `group` values of a row, y = (x * r) * w with r = rsqrt(fma(sum(x^2), 1/group, eps)); without w, y = x * r
// (kernels/cpu/rms_norm.cpp).
// Each workgroup computes one row. If the group is the whole row, all threads share it; else each wave computes whole
// groups.
// All buffers but x may be null:
//   added      x = x + added first, in place
//   z          y = y * silu(z), in the rows of floats alone
//   floats     gets y as floats; it must be given if the group is not the whole row
//   q8a32, q8a256, q16a256   get y quantized, if the group is the whole row
// REQUIRES: the memory of quantized rows overlaps neither x nor floats, and z comes without quantized rows.
#include "kernels/rdna/norm.h"
#include "kernels/rdna/quantize.h"

namespace zinc_rt::rdna {

constexpr uint32_t kNormThreads = 256;

struct QuantizedRows {
  uint32_t type;
  uint64_t to;
};

}  // namespace zinc_rt::rdna

ZRT_KERNEL(norm_rows, 256) {
  using namespace zinc_rt;
  using namespace zinc_rt::rdna;
  using Buffer = binding::NormRows;
  __shared__ float parts[kMostParts];
  const uint32_t d = dim(args, symbol::Row::width), t = group(0), wave = thread() / kWave;
  const auto push = constants<NormConstants>(args);
  const uint64_t row = (uint64_t)t * d;
  float* x = buffer<float>(args, Buffer::x) + row;
  const float* w = buffer<const float>(args, Buffer::w);
  if (args.buffers[Buffer::added] != 0) {
    const float* added = buffer<const float>(args, Buffer::added) + row;
    for (uint32_t i = thread(); i < d; i += kNormThreads) x[i] = x[i] + added[i];
    workgroup_barrier();
  }
  const auto normed = [&](uint32_t i, float factor, uint32_t at) {  // at: the index in the group
    const float v = x[i] * factor;
    return w != nullptr ? v * w[at] : v;
  };
  if (push.group == d) {
    const float r = exact::rsqrt(__builtin_fmaf(workgroup_dot<kNormThreads>(x, x, d, parts), push.inverse, push.eps));
    const auto value = [&](uint32_t i) { return normed(i, r, i); };
    const QuantizedRows wanted[] = {{kQ8A32, args.buffers[Buffer::q8a32]},
                                    {kQ8A256, args.buffers[Buffer::q8a256]},
                                    {kQ16A256, args.buffers[Buffer::q16a256]}};
#pragma unroll
    for (const QuantizedRows& rows : wanted)
      if (rows.to != 0) write_quantized(value, rows.type, rows.to, t, d, wave, kNormThreads / kWave);
    if (args.buffers[Buffer::floats] == 0) return;
    float* y = buffer<float>(args, Buffer::floats) + row;
    const float* z = args.buffers[Buffer::z] != 0 ? buffer<const float>(args, Buffer::z) + row : nullptr;
    for (uint32_t i = thread(); i < d; i += kNormThreads) y[i] = z != nullptr ? value(i) * exact::silu(z[i]) : value(i);
    return;
  }
  // The row has several groups. The eight waves take them in turn.
  float* y = buffer<float>(args, Buffer::floats) + row;
  for (uint32_t first = wave * push.group; first < d; first += kNormThreads / kWave * push.group) {
    const auto squared = [&](uint32_t i) { return x[first + i]; };
    const float r = exact::rsqrt(__builtin_fmaf(wave_dot(squared, squared, push.group), push.inverse, push.eps));
    for (uint32_t i = thread() % kWave; i < push.group; i += kWave) {
      const float v = normed(first + i, r, i);
      y[first + i] =
          args.buffers[Buffer::z] != 0 ? v * exact::silu(buffer<const float>(args, Buffer::z)[row + first + i]) : v;
    }
  }
}
