// QUANTIZE: rows of floats to int8 blocks (kernels/cpu/quantize.cpp). A wave has a block, a lane each 32nd of it.
#include "kernels/rdna/device.h"

namespace zinc_rt::rdna {

template <uint32_t kValues>  // of a lane, side by side
struct Quantized {
  float d;
  int32_t q[kValues];
};

template <uint32_t kValues>
ZRT_DEVICE Quantized<kValues> quantize_block(const float* x) {
  const uint32_t lane = thread() % kWave;
  float value[kValues], amax = 0.0f, finite = 0.0f;  // finite: 0, or NaN when some x is not finite
  for (uint32_t i = 0; i < kValues; ++i) {
    value[i] = x[lane * kValues + i];
    const float a = value[i] < 0 ? -value[i] : value[i];
    amax = a > amax ? a : amax;
    finite = finite + value[i] * 0.0f;
  }
  for (uint32_t other = 16; other > 0; other /= 2) {
    const float a = from_lane(amax, lane ^ other);
    amax = a > amax ? a : amax;
    finite = finite + from_lane(finite, lane ^ other);
  }
  const bool usable = amax >= 0x1p-100f && amax <= 0x1p120f && finite == 0.0f;
  const float inverse = usable ? exact::div(127.0f, amax) : 0.0f;
  Quantized<kValues> result;
  for (uint32_t i = 0; i < kValues; ++i)
    result.q[i] = (int8_t)f32_bits((usable ? value[i] * inverse : 0.0f) + exact::kRound);
  result.d = finite != 0.0f || amax > 0x1p120f ? quiet_nan() : usable ? exact::div(amax, 127.0f) : 0.0f;
  return result;
}

}  // namespace zinc_rt::rdna

ZRT_KERNEL(quantize, 256) {
  using namespace zinc_rt;
  using Operand = operand::Quantize;
  const uint32_t k = rdna::dim(args, 0), lane = rdna::thread() % 32, wave = rdna::thread() / 32;
  const float* x = rdna::buffer<const float>(args, Operand::x) + (uint64_t)rdna::group(0) * k;
  if (args.symbols[1] == rdna::kQ8A32) {
    auto* y = rdna::buffer<ActBlockQ8A32>(args, Operand::y) + (uint64_t)rdna::group(0) * (k / 32);
    for (uint32_t b = wave; b < k / 32; b += 8) {
      const auto block = rdna::quantize_block<1>(x + b * 32);
      auto sum = (uint32_t)block.q[0];
      for (uint32_t other = 16; other > 0; other /= 2) sum += rdna::from_lane(sum, lane ^ other);
      y[b].qs[lane] = (int8_t)block.q[0];
      if (lane == 0) y[b].d = block.d, y[b].sum = (int32_t)sum;
    }
    return;
  }
  auto* y = rdna::buffer<ActBlockQ8A256>(args, Operand::y) + (uint64_t)rdna::group(0) * (k / 256);
  for (uint32_t b = wave; b < k / 256; b += 8) {
    const auto block = rdna::quantize_block<8>(x + b * 256);
    int32_t sum = 0;
    for (uint32_t i = 0; i < 8; ++i) {
      sum += block.q[i];
      y[b].qs[lane * 8 + i] = (int8_t)block.q[i];
    }
    sum += (int32_t)rdna::from_lane((uint32_t)sum, lane ^ 1);
    if (lane % 2 == 0) y[b].sums[lane / 2] = (int16_t)sum;
    if (lane == 0) y[b].d = block.d;
  }
}
