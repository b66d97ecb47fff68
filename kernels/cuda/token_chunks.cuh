// What attention of one token over integer caches and over rotated caches has in common, if each workgroup takes whole
// chunks: the exponentials of a head's scores and the digits of its weights, both by one warp, and the merging of
// chunks.
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

// The exponentials of a head's scores in a chunk, their largest score and their sum. A warp computes them; each lane
// has every 32nd token. The exponential of a token that is not seen is 0.
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

// Converts the weights of a head, p * d where a token is seen, to digits laid out for products of 32 tokens, by the
// warp that computed the exponentials. Returns the scale of the codes. A product has the high and the low digits of
// four heads; lane l has column l / 4. Token 16 g + t of 32 is in register g of the lanes with l % 4 = t / 2 % 4, at
// the byte that byte(t) returns.
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

// The factors by which a merge multiplies the totals so far (before) and the chunk (after). They are not read if there
// is nothing to merge.
struct Factors {
  float before, after;
};
// Merges the chunk's maximum and sum into those of a head, at `of`: in a record, or in the totals of chunks that are
// merged here. is_alone: there is nothing to merge with.
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

// The records of the workgroup's heads (record_at).
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
  // Whether a chunk was written by earlier steps and may be loaded before the step's inputs are there. In a step of one
  // token these are all chunks but its last.
  __device__ __forceinline__ bool is_early(const OpArgs& args, uint32_t chunk) const {
    return args.symbols[symbol::Attention::rows] == 1 && chunk < last_chunk;
  }
};

}  // namespace zinc_rt::cuda
