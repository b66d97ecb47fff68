// Attention of one token over integer caches (flash_attn_integer.cu) and over rotated caches (flash_attn_rotated.cu)
// shares these functions. A workgroup takes whole chunks of the token's history. Per chunk and head, one warp computes
// the exponentials of the scores, and then the digits of the weights. Chunks are merged afterwards.
#pragma once

#include "kernels/cuda/integer_cells.cuh"

namespace zinc_rt::cuda {

// Returns the largest of a warp's numbers. It compares their bits, mapped to unsigned numbers of the same order.
// REQUIRES: none is a NaN.
__device__ __forceinline__ float largest_number_of_warp(float v) {
  const uint32_t bits = __float_as_uint(v), sign = 0x80000000u;
  const uint32_t most = __reduce_max_sync(0xFFFFFFFFu, (bits & sign) != 0 ? ~bits : bits | sign);
  return __uint_as_float((most & sign) != 0 ? most ^ sign : ~most);
}

// Exponentials holds a head's exponentials in a chunk, exp(score - most), where `most` is the largest score, and their
// sum. A warp computes them, and each lane holds those of every 32nd token. The exponential of a token that is not seen
// is 0.
struct Exponentials {
  float p[4], most, sum;
};
__device__ __forceinline__ Exponentials exponentials(const push::FlashAttn& c, const float* scores, float scale,
                                                     Range range) {
  const uint32_t lane = threadIdx.x % 32;
  Exponentials e;
  e.most = -__int_as_float(0x7f800000);
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) e.p[i] = scores[lane + 32 * i] * scale;
  if (c.softcap > 0.0f) {
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) e.p[i] = c.softcap * exact::tanh(e.p[i] * exact::rcp(c.softcap));
  }
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i)
    if (range.has(lane + 32 * i) && e.p[i] > e.most) e.most = e.p[i];
  e.most = largest_number_of_warp(e.most);
  float sum = 0.0f;
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    e.p[i] = range.has(lane + 32 * i) ? exp_of_difference(e.p[i] - e.most) : 0.0f;
    // The tokens i and i + 16 belong to the same of the 16 partial sums, and lie in different lanes.
    const float other = __shfl_xor_sync(0xFFFFFFFFu, e.p[i], 16);
    sum = (sum + (lane < 16 ? e.p[i] : other)) + (lane < 16 ? other : e.p[i]);
  }
  e.sum = fold_half_warp(sum);
  return e;
}

// Converts the weights of head h in a chunk to codes of two digits, and returns the scale of the codes. The weight of a
// token is p * d, or 0 if the token is not seen. The warp that computed p calls it. d: the scales of V of the lane's
// tokens.
// The digits are laid out as operands of products over 32 tokens. A product has eight columns: the high and the low
// digits of four heads in turn. Lane l has column l / 4. Token 16 g + t of the 32 is in register g of the column's lane
// with l % 4 = t / 2 % 4, at the byte that byte(t) returns.
template <class Byte>
__device__ __forceinline__ float make_digits(const float (&p)[4], const float (&d)[4], Range range, uint2 (*digits)[32],
                                             uint32_t h, const Byte& byte) {
  const uint32_t lane = threadIdx.x % 32, t = lane % 16, column = h % 4 * 2;
  float weight[4], largest = 0.0f;
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    weight[i] = range.has(lane + 32 * i) ? p[i] * d[i] : 0.0f;
    largest = max_or_nan(largest, weight[i]);
  }
  const CodeScale of = code_scale(largest_or_nan_of_warp(largest));
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t bits = code_bits(weight[i], of.inverse);
    auto* high = reinterpret_cast<uint8_t*>(digits[i] + column * 4 + t / 2 % 4) + lane / 16 * 4 + byte(t);
    high[0] = static_cast<uint8_t>(bits >> 8);
    high[4 * sizeof(uint2)] = static_cast<uint8_t>(bits ^ 0x80);
  }
  return of.d;
}

// Factors has the factors of a merge: `before` multiplies the totals so far, and `after` the chunk's own numbers. They
// are not read if the chunk is alone.
struct Factors {
  float before, after;
};
// Merges a chunk's largest score and sum into a head's, which are of[0] and of[1], and returns the factors with which
// join_value() merges the output values. `of` lies in the chunk's record, or in the totals of the chunks that this
// workgroup merges. is_alone: the chunk is the first in its record or totals, so it is stored as it is.
__device__ __forceinline__ Factors join_head(float* of, const Exponentials& e, bool is_alone) {
  if (is_alone) {
    of[0] = e.most, of[1] = e.sum;
    return {};
  }
  const float was = of[0], now = e.most > was ? e.most : was;
  const Factors f{exp_of_difference(was - now), exp_of_difference(e.most - now)};
  of[0] = now, of[1] = __fmaf_rn(e.sum, f.after, of[1] * f.before);
  return f;
}
__device__ __forceinline__ float join_value(float own, float was, Factors f, bool is_alone) {
  return is_alone ? own : __fmaf_rn(own, f.after, was * f.before);
}

// Records finds the records of the workgroup's heads. attention.cuh (record_at) says what a record is.
struct Records {
  float* first;
  uint32_t chunks, floats;
  __device__ __forceinline__ float* at(uint32_t head, uint32_t chunk) const {
    return first + static_cast<uint64_t>(head * chunks + chunk) * floats;
  }
};

// The chunks that a token sees, from first_chunk to last_chunk, and the pages of its slot.
struct TokenChunks {
  const int32_t* pages;
  uint32_t pos, first, first_chunk, last_chunk;

  __device__ __forceinline__ TokenChunks(const OpArgs& args, const push::FlashAttn& c, uint32_t t) {
    pos = static_cast<uint32_t>(args.buffer<const int32_t>(binding::Attention::pos)[t]);
    const auto slot = static_cast<uint32_t>(args.buffer<const int32_t>(binding::Attention::slot)[t]);
    pages = args.buffer<const int32_t>(binding::Attention::page_table) +
            static_cast<uint64_t>(slot) * args.symbols[symbol::Attention::m];
    first = first_seen(c.window, pos), first_chunk = first / kChunk, last_chunk = pos / kChunk;
  }
  __device__ __forceinline__ Range range_of(uint32_t chunk) const {
    return Range{max(chunk * kChunk, first) - chunk * kChunk, min(kChunk, pos + 1 - chunk * kChunk)};
  }
  // Whether a chunk may be loaded before the step's inputs are there, because only earlier steps wrote to it. This
  // holds for all chunks but the last in a step of one token. Steps of more tokens load no chunk early.
  __device__ __forceinline__ bool is_early(const OpArgs& args, uint32_t chunk) const {
    return args.symbols[symbol::Attention::rows] == 1 && chunk < last_chunk;
  }
};

}  // namespace zinc_rt::cuda
