// QUANTIZE: rows of floats to blocks of integers (kernels/cpu/quantize.cpp). A wave has a block, a lane each 32nd of
// it.
#include "kernels/rdna/device.h"

namespace zinc_rt::rdna {

template <uint32_t kValues>  // of a lane, side by side
struct Quantized {
  float d;
  int32_t q[kValues];
};

template <uint32_t kValues>
ZRT_DEVICE Quantized<kValues> quantize_block(const float* x, float most) {
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
  const float inverse = usable ? exact::div(most, amax) : 0.0f;
  Quantized<kValues> result;
  for (uint32_t i = 0; i < kValues; ++i)
    result.q[i] = (int16_t)f32_bits((usable ? value[i] * inverse : 0.0f) + exact::kRound);
  result.d = finite != 0.0f || amax > 0x1p120f ? quiet_nan() : usable ? exact::div(amax, most) : 0.0f;
  return result;
}

ZRT_DEVICE void write_block(const float* x, ActBlockQ8A32& y) {
  const uint32_t lane = thread() % kWave;
  const auto block = quantize_block<1>(x, 127.0f);
  auto sum = (uint32_t)block.q[0];
  for (uint32_t other = 16; other > 0; other /= 2) sum += from_lane(sum, lane ^ other);
  y.qs[lane] = (int8_t)block.q[0];
  if (lane == 0) y.d = block.d, y.sum = (int32_t)sum;
}

ZRT_DEVICE void write_block(const float* x, ActBlockQ8A256& y) {
  const uint32_t lane = thread() % kWave;
  const auto block = quantize_block<8>(x, 127.0f);
  int32_t sum = 0;
  for (uint32_t i = 0; i < 8; ++i) {
    sum += block.q[i];
    y.qs[lane * 8 + i] = (int8_t)block.q[i];
  }
  sum += (int32_t)from_lane((uint32_t)sum, lane ^ 1);
  if (lane % 2 == 0) y.sums[lane / 2] = (int16_t)sum;
  if (lane == 0) y.d = block.d;
}

ZRT_DEVICE void write_block(const float* x, ActBlockQ16A256& y) {
  const uint32_t lane = thread() % kWave;
  const auto block = quantize_block<8>(x, digits::kMost);
  for (uint32_t i = 0; i < 8; ++i) {
    y.high[lane * 8 + i] = (int8_t)digits::high_digit(block.q[i]);
    y.low[lane * 8 + i] = (int8_t)block.q[i];
  }
  if (lane == 0) y.d = block.d;
}

template <class Block, uint32_t kValues>
ZRT_DEVICE void quantize_row(const OpArgs& args, uint32_t k) {
  using Operand = operand::Quantize;
  const uint32_t n_blocks = k / kValues;
  const float* x = buffer<const float>(args, Operand::x) + (uint64_t)group(0) * k;
  auto* y = buffer<Block>(args, Operand::y) + (uint64_t)group(0) * n_blocks;
  for (uint32_t b = thread() / kWave; b < n_blocks; b += 8) write_block(x + b * kValues, y[b]);
}

}  // namespace zinc_rt::rdna

ZRT_KERNEL(quantize, 256) {
  using namespace zinc_rt;
  const uint32_t k = rdna::dim(args, 0);
  switch (args.symbols[1]) {
    case rdna::kQ8A32: return rdna::quantize_row<ActBlockQ8A32, 32>(args, k);
    case rdna::kQ8A256: return rdna::quantize_row<ActBlockQ8A256, 256>(args, k);
    case rdna::kQ16A256: return rdna::quantize_row<ActBlockQ16A256, 256>(args, k);
  }
}
