// Converts rows of floats to blocks of integers, as QUANTIZE defines it (kernels/cpu/quantize.cpp;
// kernels/common/act_q8.h has the blocks). A wave converts one block at a time; each lane has 1/32 of the block's
// values, which are neighbours. value_at(i) is a function that returns value i of the row.
#pragma once

#include "kernels/rdna/device.h"

namespace zinc_rt::rdna {

template <uint32_t kValues>  // values of a block that one lane has
struct Quantized {
  float d;
  int32_t q[kValues];
};

// Returns the scale of the block that begins at index `first`, and the lane's integers. most: 127, or 32,639 for codes
// of two digits.
template <uint32_t kValues, class Value>
ZRT_DEVICE Quantized<kValues> quantize_block(const Value& value_at, uint32_t first, float most) {
  const uint32_t lane = thread() % kWave;
  float value[kValues], amax = 0.0f, finite = 0.0f;  // finite: 0, or NaN when some x is not finite
#pragma unroll
  for (uint32_t i = 0; i < kValues; ++i) {
    value[i] = value_at(first + lane * kValues + i);
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
#pragma unroll
  for (uint32_t i = 0; i < kValues; ++i)
    result.q[i] = (int16_t)f32_bits((usable ? value[i] * inverse : 0.0f) + exact::kRound);
  result.d = finite != 0.0f || amax > 0x1p120f ? quiet_nan() : usable ? exact::div(amax, most) : 0.0f;
  return result;
}

// Convert the block that begins at index `first` and write it to y. There is a function for each type of block.
template <class Value>
ZRT_DEVICE void write_block(const Value& value_at, uint32_t first, ActBlockQ8A32& y) {
  const uint32_t lane = thread() % kWave;
  const auto block = quantize_block<1>(value_at, first, 127.0f);
  auto sum = (uint32_t)block.q[0];
  for (uint32_t other = 16; other > 0; other /= 2) sum += from_lane(sum, lane ^ other);
  y.qs[lane] = (int8_t)block.q[0];
  if (lane == 0) y.d = block.d, y.sum = (int32_t)sum;
}

template <class Value>
ZRT_DEVICE void write_block(const Value& value_at, uint32_t first, ActBlockQ8A256& y) {
  const uint32_t lane = thread() % kWave;
  const auto block = quantize_block<8>(value_at, first, 127.0f);
  int32_t sum = 0;
#pragma unroll
  for (uint32_t i = 0; i < 8; ++i) {
    sum += block.q[i];
    y.qs[lane * 8 + i] = (int8_t)block.q[i];
  }
  sum += (int32_t)from_lane((uint32_t)sum, lane ^ 1);
  if (lane % 2 == 0) y.sums[lane / 2] = (int16_t)sum;
  if (lane == 0) y.d = block.d;
}

template <class Value>
ZRT_DEVICE void write_block(const Value& value_at, uint32_t first, ActBlockQ16A256& y) {
  const uint32_t lane = thread() % kWave;
  const auto block = quantize_block<8>(value_at, first, digits::kMost);
#pragma unroll
  for (uint32_t i = 0; i < 8; ++i) {
    y.high[lane * 8 + i] = (int8_t)digits::high_digit(block.q[i]);
    y.low[lane * 8 + i] = (int8_t)block.q[i];
  }
  if (lane == 0) y.d = block.d;
}

// Converts every n_waves-th block of row t, from block `wave` on; n_waves = kOneBlock converts block `wave` alone. A
// row has k values, and `to` is the address of row 0.
constexpr uint32_t kOneBlock = 1u << 30;
template <class Block, uint32_t kValues, class Value>
ZRT_DEVICE void write_blocks(const Value& value_at, uint64_t to, uint32_t t, uint32_t k, uint32_t wave,
                             uint32_t n_waves) {
  auto* y = at_address<Block>(to) + (uint64_t)t * (k / kValues);
  for (uint32_t b = wave; b < k / kValues; b += n_waves) write_block(value_at, b * kValues, y[b]);
}
// Returns how many blocks of a type hold 256 values.
ZRT_DEVICE uint32_t blocks_of(uint32_t type) {
  return type == kQ8A32 ? 8 : 1;
}
// Does what write_blocks() does, for a type that is known only at run time.
template <class Value>
ZRT_DEVICE void write_quantized(const Value& value_at, uint32_t type, uint64_t to, uint32_t t, uint32_t k,
                                uint32_t wave, uint32_t n_waves) {
  switch (type) {
    case kQ8A32: return write_blocks<ActBlockQ8A32, 32>(value_at, to, t, k, wave, n_waves);
    case kQ8A256: return write_blocks<ActBlockQ8A256, 256>(value_at, to, t, k, wave, n_waves);
    case kQ16A256: return write_blocks<ActBlockQ16A256, 256>(value_at, to, t, k, wave, n_waves);
  }
}

}  // namespace zinc_rt::rdna
