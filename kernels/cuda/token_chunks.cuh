// What attention of a token by workgroups of whole chunks has for integers and for rotated codes: exponentials of a
// head's scores and the digits of its weights by a warp, and where a chunk's maximum, sum and values go.
#pragma once

#include "kernels/cuda/integer_cells.cuh"

namespace zinc_rt::cuda {

// The largest of numbers of which none is a NaN: their bits in an order without signs.
__device__ __forceinline__ float largest_number_of_warp(float v) {
  const uint32_t bits = __float_as_uint(v), sign = 0x80000000u;
  const uint32_t most = __reduce_max_sync(0xFFFFFFFFu, (bits & sign) != 0 ? ~bits : bits | sign);
  return __uint_as_float((most & sign) != 0 ? most ^ sign : ~most);
}

// Of a head in a chunk, by a warp whose lanes have every 32nd token: 0 where it is not seen.
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
    // The token 16 before or after is of the same of 16 sums.
    const float other = __shfl_xor_sync(0xFFFFFFFFu, e.p[i], 16);
    sum = (sum + (lane < 16 ? e.p[i] : other)) + (lane < 16 ? other : e.p[i]);
  }
  e.sum = fold_half_warp(sum);
  return e;
}

// The weights of a head, p * d where a token is seen, as digits for products with 32 tokens each, of which lane l has
// column l / 4: of four heads the high and the low ones. Token 16 g + t of 32 is in register g of lanes with t / 2 % 4;
// byte: its place there, by t. Gives the codes' scale. By the warp of the exponentials.
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

// What o and the sum so far, and those of the chunk, are multiplied by; not read where the chunk is alone.
struct Factors {
  float before, after;
};
// The chunk's maximum and sum join those of the head, which follow its values: in a record, or in what is merged here.
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

// Those of the workgroup's heads (record_at).
struct Records {
  float* first;
  uint32_t chunks, floats;
  __device__ __forceinline__ float* at(uint32_t head, uint32_t chunk) const {
    return first + static_cast<uint64_t>(head * chunks + chunk) * floats;
  }
};

// The chunks of a token, in turn from the blockIdx.z-th, and the pages of its slot.
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
  // All chunks but a token's last are of earlier steps, where it is its slot's only one: they may be asked for before
  // the inputs are there.
  __device__ __forceinline__ bool is_early(const OpArgs& args, uint32_t chunk) const {
    return args.symbols[symbol::Attention::rows] == 1 && chunk < last_chunk;
  }
};

}  // namespace zinc_rt::cuda
