// FLASH_ATTN and FLASH_ATTN_BATCHED of caches of 16-bit integers, at the bits of kernels/cpu/flash_attn.cpp, for steps of
// few tokens. A workgroup has a query token, a kv head with its query heads, and every gridDim.z-th chunk. Codes go from
// the cache to the registers of the products (integer_cells.cuh): those of the next chunk are on their way while the
// weights of this one are made.
// Scores: a warp has a page of 16 keys, the rows of its products; columns are the two digits of q of four heads. A lane
// has the words 16 s + 4 j + lane % 4, j = 0..3, of step s: the products' order of values is its own.
// Weights: a warp has a head. Values: a warp has 16 values of the head, the rows; columns are the digits of the weights
// of four heads.
// Heads wider than 256 values are taken in parts. With one part in z the workgroup merges its chunks, and quantizes the
// result if `quantized` is bound; with several each chunk leaves a record for flash_attn_merge.
#include "kernels/cuda/integer_cells.cuh"

using namespace zinc_rt::cuda;

constexpr uint32_t kThreads = kAttendThreads, kWarps = kThreads / 32, kPages = kChunk / 16;
constexpr uint32_t kHeads = kAttendIntegerHeads;  // that share a pass over K and V
static_assert(kWarps == kPages && kHeads <= kWarps);

struct Shared {
  float scores[kHeads][kChunk];         // without the scale of q
  float before[kHeads], after[kHeads];  // factors by which o and the sum so far, and those of the chunk, are rescaled
  float d[kHeads];                      // of the weights
  uint2 weights[kHeads / 4][4][32];     // digits, as the products of 32 tokens want them
};

// q of the workgroup's heads as digits: of four heads and 32 values, lane l of a product has column l / 4, which is head
// l / 8 and digit l / 4 % 2.
__device__ __forceinline__ uint8_t* q_digits(uint2* q, uint32_t steps, uint32_t head, uint32_t digit, uint32_t i) {
  const uint32_t word = i / 2, step = word / 16, j = word / 4 % 4, lane = (head % 4 * 2 + digit) * 4 + word % 4;
  return reinterpret_cast<uint8_t*>(q + ((head / 4) * steps + step) * 32 + lane) + j * 2 + i % 2;
}
// A warp a head. scales: what the scores of a head are multiplied by.
__device__ __forceinline__ void quantize_q(const push::FlashAttn& c, const float* q_row, uint32_t n_heads, uint2* q,
                                           float* scales) {
  const uint32_t lane = threadIdx.x % 32, steps = (c.head_dim + 31) / 32;
  for (uint32_t h = threadIdx.x / 32; h < (n_heads + 3) / 4 * 4; h += kWarps) {
    float most = 0.0f;
    if (h < n_heads)
      for (uint32_t i = lane; i < c.head_dim; i += 32) {
        const float x = q_row[h * c.head_dim + i];
        most = max_or_nan(most, x < 0 ? -x : x);
      }
#pragma unroll
    for (int w = 16; w > 0; w /= 2) most = max_or_nan(most, __shfl_xor_sync(0xFFFFFFFFu, most, w));
    const CodeScale scale = code_scale(most);
    for (uint32_t i = lane; i < steps * 32; i += 32) {
      const bool is_there = h < n_heads && i < c.head_dim;
      const uint32_t bits = code_bits(is_there ? q_row[h * c.head_dim + i] : 0.0f, scale.inverse);
      *q_digits(q, steps, h, 0, i) = static_cast<uint8_t>(bits >> 8);
      *q_digits(q, steps, h, 1, i) = static_cast<uint8_t>(bits ^ 0x80);
    }
    if (lane == 0 && h < n_heads) scales[h] = c.scale * scale.d;
  }
}

// The weights of a head in a chunk, by a warp, whose lanes have every 32nd token.
struct Weights {
  float most, sum, d;
};
__device__ __forceinline__ Weights make_weights(const push::FlashAttn& c, const float* scores, float scale,
                                                const float (&d_v)[4], Range range, uint2 (*digits)[32], uint32_t h) {
  const uint32_t lane = threadIdx.x % 32;
  float p[4], most = -__int_as_float(0x7f800000);
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    p[i] = scores[lane + 32 * i] * scale;
    if (c.softcap > 0.0f) p[i] = c.softcap * exact::tanh(p[i] * exact::rcp(c.softcap));
    if (range.has(lane + 32 * i) && p[i] > most) most = p[i];
  }
  most = largest_of_warp(most);
  float sum = 0.0f, largest = 0.0f, weight[4];
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    const bool is_seen = range.has(lane + 32 * i);
    p[i] = is_seen ? exact::exp(p[i] - most) : 0.0f;
    // The token 16 before or after is of the same of 16 sums.
    const float other = __shfl_xor_sync(0xFFFFFFFFu, p[i], 16);
    sum = (sum + (lane < 16 ? p[i] : other)) + (lane < 16 ? other : p[i]);
    weight[i] = is_seen ? p[i] * d_v[i] : 0.0f;
    largest = max_or_nan(largest, weight[i]);
  }
#pragma unroll
  for (int w = 16; w > 0; w /= 2) largest = max_or_nan(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, w));
  const CodeScale of = code_scale(largest);
  // Token 16 g + t of 32 is in register g, byte t / 8 * 2 + t % 2 of lanes with t / 2 % 4.
  const uint32_t t = lane % 16, column = h % 4 * 2;
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t bits = code_bits(weight[i], of.inverse);
    auto* high = reinterpret_cast<uint8_t*>(digits[i] + column * 4 + t / 2 % 4) + lane / 16 * 4 + t / 8 * 2 + t % 2;
    high[0] = static_cast<uint8_t>(bits >> 8);
    high[4 * sizeof(uint2)] = static_cast<uint8_t>(bits ^ 0x80);
  }
  return {most, fold_half_warp(sum), of.d};
}

// Codes of a lane, of K: words of two tokens; of V: of two values. And of what page they are.
template <uint32_t kWidth>
struct Attend {
  static constexpr uint32_t kSteps = kWidth / 32, kTiles = (kWidth + 16 * kWarps - 1) / (16 * kWarps);

  const OpArgs& args;
  const push::FlashAttn c;
  const uint32_t kv_head;

  static __device__ __forceinline__ uint32_t lane() { return threadIdx.x % 32; }
  static __device__ __forceinline__ uint32_t warp() { return threadIdx.x / 32; }
  // The codes of the kv head in a page, and its scales.
  __device__ __forceinline__ const uint8_t* codes(int32_t page, bool is_key) const {
    return args.buffer<const uint8_t>(is_key ? binding::Attention::kv_k : binding::Attention::kv_v) +
           static_cast<uint64_t>(static_cast<uint32_t>(page)) *
               args.symbols[is_key ? symbol::Attention::pitch_kv_k : symbol::Attention::pitch_kv_v] +
           kv_integer::codes_at(kv_head, is_key ? c.head_dim : c.v_head_dim);
  }
  __device__ __forceinline__ const uint16_t* scales(int32_t page, bool is_key) const {
    const uint32_t dim = is_key ? c.head_dim : c.v_head_dim;
    return reinterpret_cast<const uint16_t*>(codes(page, is_key) + kv_integer::scales_at(kv_head, c.n_kv_heads, dim) -
                                             kv_integer::codes_at(kv_head, dim));
  }
  static __device__ __forceinline__ bool has_page(Range range, uint32_t page) {
    return page * 16 < range.end && page * 16 + 16 > range.begin;
  }
  // own_pages: lane l has that of the chunk's l % 8-th 16 tokens.
  static __device__ __forceinline__ int32_t page_of(int32_t own_pages, uint32_t i) {
    return __shfl_sync(0xFFFFFFFFu, own_pages, static_cast<int>(i));
  }

  using Keys = uint2[kSteps][4];
  // Values [first, first + kWidth) of the warp's page. What is not there becomes zeros.
  __device__ __forceinline__ void ask_keys(Keys& k, int32_t own_pages, Range range, uint32_t first) const {
    const int32_t page = page_of(own_pages, warp());
    const bool is_seen = has_page(range, warp());
    const uint8_t* from = codes(page, true) + first * 32 + lane() % 4 * 64 + lane() / 4 * 8;
#pragma unroll
    for (uint32_t s = 0; s < kSteps; ++s)
#pragma unroll
      for (uint32_t j = 0; j < 4; ++j) {
        const uint32_t word = 16 * s + 4 * j;
        k[s][j] = uint2{0, 0};
        if (is_seen && first / 2 + word + lane() % 4 < c.head_dim / 2)
          k[s][j] = *reinterpret_cast<const uint2*>(from + word * 64);
      }
  }
  __device__ __forceinline__ uint32_t ask_key_scales(int32_t own_pages, Range range) const {
    const int32_t page = page_of(own_pages, warp());
    return has_page(range, warp()) ? reinterpret_cast<const uint32_t*>(scales(page, true))[lane() / 4] : 0;
  }

  // Sums of upper and of lower bytes, of four heads.
  using Sums = int[kHeads / 4][2][4];
  __device__ __forceinline__ void add_keys(Sums& sums, const Keys& k, const uint2* q, uint32_t n,
                                           uint32_t first) const {
    const uint32_t steps = (c.head_dim + 31) / 32;
#pragma unroll
    for (uint32_t s = 0; s < kSteps; ++s) {
      if (first / 32 + s >= steps) break;
      const uint32_t upper[4] = {upper_bytes(k[s][0].x, k[s][1].x), upper_bytes(k[s][0].y, k[s][1].y),
                                 upper_bytes(k[s][2].x, k[s][3].x), upper_bytes(k[s][2].y, k[s][3].y)},
                     lower[4] = {lower_bytes(k[s][0].x, k[s][1].x), lower_bytes(k[s][0].y, k[s][1].y),
                                 lower_bytes(k[s][2].x, k[s][3].x), lower_bytes(k[s][2].y, k[s][3].y)};
#pragma unroll
      for (uint32_t tile = 0; tile < kHeads / 4; ++tile) {
        if (tile * 4 >= n) continue;
        const uint2 b = q[(tile * steps + first / 32 + s) * 32 + lane()];
        mma32<true>(sums[tile][0], upper, b);
        mma32<false>(sums[tile][1], lower, b);
      }
    }
  }
  // d: of the lane's two tokens.
  static __device__ __forceinline__ void leave_scores(const Sums& sums, uint32_t d, uint32_t n,
                                                      float (&scores)[kHeads][kChunk]) {
    const float d_first = __uint_as_float(d << 16), d_second = __uint_as_float(d & 0xFFFF0000u);
#pragma unroll
    for (uint32_t tile = 0; tile < kHeads / 4; ++tile) {
      if (tile * 4 >= n) continue;
      const int(&upper)[4] = sums[tile][0], (&lower)[4] = sums[tile][1];
      *reinterpret_cast<float2*>(scores[tile * 4 + lane() % 4] + warp() * 16 + lane() / 4 * 2) =
          make_float2(joined(upper[0], lower[0], upper[1], lower[1]) * d_first,
                      joined(upper[2], lower[2], upper[3], lower[3]) * d_second);
    }
  }

  using Values = uint2[kTiles][4][4];  // of a tile of 16 values, 32 tokens, pairs of tokens
  __device__ __forceinline__ bool has_tile(uint32_t first, uint32_t tile) const {
    return (tile * kWarps + warp()) * 16 < min(kWidth, c.v_head_dim - first);
  }
  // Values [first, first + kWidth) of the chunk.
  __device__ __forceinline__ void ask_values(Values& v, int32_t own_pages, Range range, uint32_t first) const {
#pragma unroll
    for (uint32_t s = 0; s < 4; ++s)
#pragma unroll
      for (uint32_t half = 0; half < 2; ++half) {
        const int32_t page = page_of(own_pages, 2 * s + half);
        const bool is_seen = has_page(range, 2 * s + half);
        const uint8_t* from =
            codes(page, false) + (lane() % 4 * c.v_head_dim + first + warp() * 16 + lane() / 4 * 2) * 4;
#pragma unroll
        for (uint32_t tile = 0; tile < kTiles; ++tile)
#pragma unroll
          for (uint32_t j = 0; j < 2; ++j) {
            uint2& to = v[tile][s][half * 2 + j];
            to = uint2{0, 0};
            if (is_seen && has_tile(first, tile))
              to = *reinterpret_cast<const uint2*>(from + (j * 4 * c.v_head_dim + tile * kWarps * 16) * 4);
          }
      }
  }
  // Of the tokens whose weights a lane makes.
  __device__ __forceinline__ void ask_value_scales(float (&d)[4], int32_t own_pages, Range range) const {
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t own = 2 * i + lane() / 16;
      const int32_t page = page_of(own_pages, own);
      d[i] = has_page(range, own) ? __uint_as_float(static_cast<uint32_t>(scales(page, false)[lane() % 16]) << 16) : 0;
    }
  }
  // use(head, value, its o and the next one's) for the lane's, of n heads.
  template <class Use>
  __device__ __forceinline__ void sum_values(const Values& v, const Shared& shared, uint32_t n, uint32_t first,
                                             const Use& use) const {
#pragma unroll
    for (uint32_t tile = 0; tile < kTiles; ++tile) {
      if (!has_tile(first, tile)) continue;
      Sums sums = {};
#pragma unroll
      for (uint32_t s = 0; s < 4; ++s) {
        const uint2(&of)[4] = v[tile][s];
        const uint32_t upper[4] = {upper_bytes(of[0].x, of[1].x), upper_bytes(of[0].y, of[1].y),
                                   upper_bytes(of[2].x, of[3].x), upper_bytes(of[2].y, of[3].y)},
                       lower[4] = {lower_bytes(of[0].x, of[1].x), lower_bytes(of[0].y, of[1].y),
                                   lower_bytes(of[2].x, of[3].x), lower_bytes(of[2].y, of[3].y)};
#pragma unroll
        for (uint32_t four = 0; four < kHeads / 4; ++four) {
          if (four * 4 >= n) continue;
          const uint2 b = shared.weights[four][s][lane()];
          mma32<true>(sums[four][0], upper, b);
          mma32<false>(sums[four][1], lower, b);
        }
      }
#pragma unroll
      for (uint32_t four = 0; four < kHeads / 4; ++four) {
        const uint32_t h = four * 4 + lane() % 4;
        if (h >= n) continue;
        const int(&upper)[4] = sums[four][0], (&lower)[4] = sums[four][1];
        const float d = shared.d[h];
        use(h, first + (tile * kWarps + warp()) * 16 + lane() / 4 * 2,
            make_float2(joined(upper[0], lower[0], upper[1], lower[1]) * d,
                        joined(upper[2], lower[2], upper[3], lower[3]) * d));
      }
    }
  }

  __device__ __forceinline__ void run(Shared& shared, uint2* memory) const {
    const uint32_t t = blockIdx.x, group = c.n_heads / c.n_kv_heads;
    const auto pos = static_cast<uint32_t>(args.buffer<const int32_t>(binding::Attention::pos)[t]),
               slot = static_cast<uint32_t>(args.buffer<const int32_t>(binding::Attention::slot)[t]);
    const int32_t* pages = args.buffer<const int32_t>(binding::Attention::page_table) +
                           static_cast<uint64_t>(slot) * args.symbols[symbol::Attention::m];
    const bool is_whole = gridDim.z == 1;
    const uint32_t first = first_seen(c.window, pos), first_chunk = first / kChunk, last_chunk = pos / kChunk;
    const auto range_of = [&](uint32_t chunk) {
      return Range{max(chunk * kChunk, first) - chunk * kChunk, min(kChunk, pos + 1 - chunk * kChunk)};
    };
    const auto pages_of = [&](uint32_t chunk, Range range) {
      return has_page(range, lane() % kPages) ? pages[chunk * kPages + lane() % kPages] : 0;
    };
    uint32_t chunk = first_chunk + blockIdx.z;
    // All chunks but a token's last are of earlier steps, where it is its slot's only one: they are asked for before the
    // inputs are there.
    const bool is_early = args.symbols[symbol::Attention::rows] == 1 && chunk < last_chunk;
    if (!is_early) wait_for_inputs();
    if (chunk > last_chunk) return;
    // The heads' q, what their scores are multiplied by and, where chunks are merged here, o, maximum and sum of each.
    const uint32_t q_steps = (c.head_dim + 31) / 32, total_pitch = c.v_head_dim + 2;
    float* scales_of_q = reinterpret_cast<float*>(memory + (group + 3) / 4 * q_steps * 32);
    float* total = scales_of_q + (group + 3) / 4 * 4;
    const bool is_wide = max(c.head_dim, c.v_head_dim) > kWidth;
    Range range = range_of(chunk);
    int32_t own_pages = pages_of(chunk, range);
    Keys k;
    Values v;
    uint32_t d_k = ask_key_scales(own_pages, range);
    float d_v[4];
    ask_keys(k, own_pages, range, 0);
    ask_value_scales(d_v, own_pages, range);
    ask_values(v, own_pages, range, 0);
    if (is_early) wait_for_inputs();
    quantize_q(c,
               args.buffer<const float>(binding::Attention::q) +
                   (static_cast<uint64_t>(t) * c.n_heads + kv_head * group) * c.head_dim,
               group, memory, scales_of_q);
    __syncthreads();
    for (;;) {
      const uint32_t next = chunk + gridDim.z;
      const bool is_first = chunk == first_chunk, is_last = next > last_chunk;
      const Range next_range = is_last ? Range{0, 0} : range_of(next);
      const int32_t next_pages = is_last ? 0 : pages_of(next, next_range);
      for (uint32_t h0 = 0; h0 < group; h0 += kHeads) {
        const uint32_t n = min(kHeads, group - h0);
        const bool is_end = h0 + kHeads >= group;
        Sums sums = {};
        for (uint32_t at = 0; at < c.head_dim; at += kWidth) {
          if (is_wide) ask_keys(k, own_pages, range, at);
          add_keys(sums, k, memory + h0 / 4 * q_steps * 32, n, at);
        }
        leave_scores(sums, d_k, n, shared.scores);
        __syncthreads();
        if (is_end && !is_last) {
          d_k = ask_key_scales(next_pages, next_range);
          if (!is_wide) ask_keys(k, next_pages, next_range, 0);
        }
        const auto record_of = [&](uint32_t h) {
          return record_at(args, static_cast<uint64_t>(t) * c.n_heads + kv_head * group + h0 + h, chunk);
        };
        if (warp() < n) {
          const uint32_t h = warp();
          const Weights w =
              make_weights(c, shared.scores[h], scales_of_q[h0 + h], d_v, range, shared.weights[h / 4], h);
          if (lane() == 0) {
            float* of = (is_whole ? total + (h0 + h) * total_pitch : record_of(h)) + c.v_head_dim;
            const float was = is_whole && !is_first ? of[0] : w.most, now = w.most > was ? w.most : was;
            const float before = exact::exp(was - now), after = exact::exp(w.most - now);
            of[1] = is_whole && !is_first ? __fmaf_rn(w.sum, after, of[1] * before) : w.sum;
            of[0] = now;
            shared.before[h] = before, shared.after[h] = after, shared.d[h] = w.d;
          }
        }
        __syncthreads();
        if (is_end && !is_last) ask_value_scales(d_v, next_pages, next_range);
        for (uint32_t at = 0; at < c.v_head_dim; at += kWidth) {
          if (is_wide) ask_values(v, own_pages, range, at);
          sum_values(v, shared, n, at, [&](uint32_t h, uint32_t i, float2 o) {
            if (!is_whole) {
              *reinterpret_cast<float2*>(record_of(h) + i) = o;
              return;
            }
            float* of = total + (h0 + h) * total_pitch + i;
            of[0] = is_first ? o.x : __fmaf_rn(o.x, shared.after[h], of[0] * shared.before[h]);
            of[1] = is_first ? o.y : __fmaf_rn(o.y, shared.after[h], of[1] * shared.before[h]);
          });
        }
        if (is_end && !is_last && !is_wide) ask_values(v, next_pages, next_range, 0);
      }
      if (is_last) break;
      chunk = next, range = next_range, own_pages = next_pages;
    }
    if (!is_whole) return;
    __syncthreads();
    write_row<kThreads>(args, c, total);
  }
};

template <uint32_t kWidth>
__device__ __forceinline__ void attend_integer(const OpArgs& args) {
  ZRT_DYNAMIC_SHARED(uint2, memory);
  __shared__ __align__(16) Shared shared;
  let_next_start();
  const bool is_token = has_row(args, blockIdx.x);
  wait_for_places(args);
  if (!is_token) {
    wait_for_inputs();
    return;
  }
  Attend<kWidth>{args, args.constants<push::FlashAttn>(), blockIdx.y}.run(shared, memory);
}

extern "C" __global__ void __launch_bounds__(kThreads, 2) flash_attn_i16_64(const __grid_constant__ OpArgs args) {
  attend_integer<64>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 2) flash_attn_i16_128(const __grid_constant__ OpArgs args) {
  attend_integer<128>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 1) flash_attn_i16_256(const __grid_constant__ OpArgs args) {
  attend_integer<256>(args);
}
