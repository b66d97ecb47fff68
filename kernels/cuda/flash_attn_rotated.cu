// FLASH_ATTN and FLASH_ATTN_BATCHED of caches of rotated codes (kernels/common/kv_rotate.h), at the bits of
// kernels/cpu/flash_attn.cpp. A workgroup has a query token, a kv head with its query heads, and every gridDim.z-th chunk.
// Scores: a thread has a key; products of four codes at a time are summed exactly, a block of 64 values by its scales.
// Weights: a warp has a head, or several in turn.
// Values: their sum goes token by token, so a thread has two values, those that share a byte, of some of the heads.
// With one part in z the workgroup merges its chunks; with several each chunk leaves a record for flash_attn_merge.
// flash_attn_rotate_back follows, when y is whole.
#include "kernels/cuda/attention.cuh"

using namespace zinc_rt::cuda;

constexpr uint32_t kThreads = kAttendRotatedThreads, kWarps = kThreads / 32, kHeads = 8, kPages = kChunk / 16;
constexpr uint32_t kMostBlocks = kv::kMaxHead / kv::kBlock, kWords = kv::kBlock / 4;
static_assert(kThreads == kChunk);

struct Shared {
  float weights[kHeads][kChunk];                // scores at first
  float d[kMostBlocks][kChunk];                 // of the values
  float table[16][32];                          // the same for each lane, so that lanes read different banks
  uint4 codes[kChunk * kv::kMaxHead / 2 / 16];  // of the values
  float before[kHeads], after[kHeads];  // factors by which o and the sum so far, and those of the chunk, are rescaled
};

// H(s q) of the workgroup's heads as int8 in words of four, with a scale for 64 (QUANTIZE's rule). A warp a head.
__device__ __forceinline__ void quantize_q(const float* q_row, uint32_t n_heads, uint32_t head_dim, int8_t* codes,
                                           float* scales) {
  const uint32_t lane = threadIdx.x % 32, n_blocks = head_dim / kv::kBlock;
  for (uint32_t h = threadIdx.x / 32; h < n_heads; h += kWarps) {
    float x[rotated::kRegisters];
    rotated::rotate(q_row + h * head_dim, head_dim, x);
#pragma unroll
    for (uint32_t b = 0; b < kMostBlocks; ++b) {
      if (b >= n_blocks) continue;
      const float first = x[2 * b], second = x[2 * b + 1], most = largest_of_warp(largest_of_two(first, second));
      const bool is_finite = sum_of_warp(first * 0.0f + second * 0.0f) == 0.0f,
                 is_usable = is_finite && most >= 0x1p-100f && most <= 0x1p120f;
      const float inverse = is_usable ? exact::div(127.0f, most) : 0.0f;
      int8_t* block = codes + h * head_dim + b * kv::kBlock;
      block[lane] = static_cast<int8_t>(is_usable ? exact::round_int(first * inverse) : 0.0f);
      block[32 + lane] = static_cast<int8_t>(is_usable ? exact::round_int(second * inverse) : 0.0f);
      if (lane == 0)
        scales[h * n_blocks + b] = is_usable                       ? exact::div(most, 127.0f)
                                   : is_finite && most <= 0x1p120f ? 0.0f
                                                                   : nan_value();
    }
  }
}

// A block of a key: word w has values 4 w to 4 w + 3.
template <bool kIsR8>
__device__ __forceinline__ void load_key(const uint8_t* codes, uint32_t b, uint32_t token, uint32_t (&words)[kWords]) {
  constexpr uint32_t kN = kIsR8 ? kWords : kWords / 2;
  const auto* from =
      reinterpret_cast<const uint32_t*>(codes + b * kv::code_bytes(kIsR8, kv::kBlock) * kv::kPageTokens) + token;
#pragma unroll
  for (uint32_t w = 0; w < kN; ++w) words[w] = from[w * kv::kPageTokens];
  if constexpr (!kIsR8) {
#pragma unroll
    for (uint32_t w = 0; w < kN; ++w) {
      words[kN + w] = rotated::table_bytes(words[w] >> 4);
      words[w] = rotated::table_bytes(words[w]);
    }
  }
}

// Makes the scores of a head its weights; gives the largest score and the sum of the weights. By a warp, whose lanes
// have every 32nd token.
__device__ __forceinline__ float2 make_weights(const push::FlashAttn& c, float* scores, Range range) {
  const uint32_t lane = threadIdx.x % 32;
  const float scale = c.scale * (1.0f / static_cast<float>(c.head_dim));
  float p[4], most = -__int_as_float(0x7f800000);
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    p[i] = scores[lane + 32 * i] * scale;
    if (c.softcap > 0.0f) p[i] = c.softcap * exact::tanh(p[i] * exact::rcp(c.softcap));
    if (range.has(lane + 32 * i) && p[i] > most) most = p[i];
  }
  most = largest_of_warp(most);
  float sum = 0.0f;
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    p[i] = range.has(lane + 32 * i) ? exact::exp(p[i] - most) : 0.0f;
    // The token 16 before or after is of the same of 16 sums.
    const float other = __shfl_xor_sync(0xFFFFFFFFu, p[i], 16);
    sum = (sum + (lane < 16 ? p[i] : other)) + (lane < 16 ? other : p[i]);
    scores[lane + 32 * i] = p[i];
  }
  return make_float2(most, fold_half_warp(sum));
}

// kWidth: values of a head of V.
template <bool kIsR8, uint32_t kWidth>
__device__ __forceinline__ void attend(const OpArgs& args, const push::FlashAttn& c, Shared& shared, float* memory) {
  constexpr uint32_t kColumns = kWidth / 2, kSets = kThreads / kColumns, kOwn = kHeads / kSets,
                     kValueBlocks = kWidth / kv::kBlock;
  const uint32_t t = blockIdx.x, kv_head = blockIdx.y, group = c.n_heads / c.n_kv_heads,
                 n_blocks = c.head_dim / kv::kBlock, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const auto pos = static_cast<uint32_t>(args.buffer<const int32_t>(binding::Attention::pos)[t]),
             slot = static_cast<uint32_t>(args.buffer<const int32_t>(binding::Attention::slot)[t]);
  const int32_t* pages = args.buffer<const int32_t>(binding::Attention::page_table) +
                         static_cast<uint64_t>(slot) * args.symbols[symbol::Attention::m];
  const bool is_whole = gridDim.z == 1;
  const uint32_t first = first_seen(c.window, pos), first_chunk = first / kChunk, last_chunk = pos / kChunk;
  if (first_chunk + blockIdx.z > last_chunk) return;
  // Codes and scales of q; where chunks are merged here, o, maximum and sum of each head.
  auto* q = reinterpret_cast<int8_t*>(memory);
  float* q_scales = memory + group * c.head_dim / 4;
  float* total = q_scales + group * n_blocks;
  const uint32_t total_pitch = kWidth + 2;
  quantize_q(args.buffer<const float>(binding::Attention::q) +
                 (static_cast<uint64_t>(t) * c.n_heads + kv_head * group) * c.head_dim,
             group, c.head_dim, q, q_scales);
  constexpr auto table = rotated::copied(kv::kTable);
  if (warp == 0)
#pragma unroll
    for (uint32_t i = 0; i < 16; ++i) shared.table[i][lane] = static_cast<float>(table.of[i]);
  __syncthreads();
#pragma unroll 1
  for (uint32_t chunk = first_chunk + blockIdx.z; chunk <= last_chunk; chunk += gridDim.z) {
    const bool is_first = chunk == first_chunk;
    const Range range{max(chunk * kChunk, first) - chunk * kChunk, min(kChunk, pos + 1 - chunk * kChunk)};
    const uint32_t own_page = threadIdx.x / 16, token = threadIdx.x % 16;
    const bool is_seen = has_page(range, own_page);
    const int32_t page = is_seen ? pages[chunk * kPages + own_page] : 0;
    const uint8_t *key_page = page_at(args, true, page), *value_page = page_at(args, false, page);
    const uint8_t* key_codes = key_page + kv::codes_at(kIsR8, kv_head, c.head_dim);
    const auto* key_scales =
        reinterpret_cast<const uint16_t*>(key_page + kv::scales_at(kIsR8, kv_head, c.n_kv_heads, c.head_dim));
    const auto* value_scales =
        reinterpret_cast<const uint16_t*>(value_page + kv::scales_at(false, kv_head, c.n_kv_heads, kWidth));
#pragma unroll
    for (uint32_t b = 0; b < kValueBlocks; ++b)
      shared.d[b][threadIdx.x] =
          is_seen ? zinc_rt::f16_to_f32(value_scales[token * kValueBlocks + b]) * (1.0f / kv::kStoredScale) : 0.0f;
    // Codes of the values, a page's part after another, are on their way while scores are made.
    uint4 ahead[kColumns / 16];
#pragma unroll
    for (uint32_t i = 0; i < kColumns / 16; ++i) {
      const uint32_t at = i * kThreads + threadIdx.x;
      ahead[i] = make_uint4(0, 0, 0, 0);
      if (has_page(range, at / kColumns))
        ahead[i] = *reinterpret_cast<const uint4*>(page_at(args, false, pages[chunk * kPages + at / kColumns]) +
                                                   kv::codes_at(false, kv_head, kWidth) + at % kColumns * 16);
    }
#pragma unroll 1
    for (uint32_t h0 = 0; h0 < group; h0 += kHeads) {
      const uint32_t n = min(kHeads, group - h0);
      float dots[kHeads] = {};
#pragma unroll 1
      for (uint32_t b = 0; b < n_blocks; ++b) {
        if (!is_seen) break;
        uint32_t words[kWords];
        load_key<kIsR8>(key_codes, b, token, words);
        const float d = zinc_rt::f16_to_f32(key_scales[b * 16 + token]) * (kIsR8 ? 1.0f : 1.0f / kv::kStoredScale);
#pragma unroll
        for (uint32_t h = 0; h < kHeads; ++h) {
          if (h >= n) continue;
          const auto* of = reinterpret_cast<const int*>(q + (h0 + h) * c.head_dim) + b * kWords;
          int sum = 0;
#pragma unroll
          for (uint32_t w = 0; w < kWords; ++w) sum = __dp4a(static_cast<int>(words[w]), of[w], sum);
          dots[h] = __fmaf_rn(static_cast<float>(sum) * d, q_scales[(h0 + h) * n_blocks + b], dots[h]);
        }
      }
#pragma unroll
      for (uint32_t h = 0; h < kHeads; ++h)
        if (h < n) shared.weights[h][threadIdx.x] = dots[h];
      if (h0 == 0)
#pragma unroll
        for (uint32_t i = 0; i < kColumns / 16; ++i) shared.codes[i * kThreads + threadIdx.x] = ahead[i];
      __syncthreads();
      const uint64_t first_head = static_cast<uint64_t>(t) * c.n_heads + kv_head * group + h0;
#pragma unroll 1
      for (uint32_t h = warp; h < n; h += kWarps) {
        const float2 w = make_weights(c, shared.weights[h], range);
        if (lane > 0) continue;
        float* of = (is_whole ? total + (h0 + h) * total_pitch : record_at(args, first_head + h, chunk)) + kWidth;
        const float was = is_whole && !is_first ? of[0] : w.x, now = w.x > was ? w.x : was;
        const float before = exact::exp(was - now), after = exact::exp(w.x - now);
        of[1] = is_whole && !is_first ? __fmaf_rn(w.y, after, of[1] * before) : w.y;
        of[0] = now;
        shared.before[h] = before, shared.after[h] = after;
      }
      __syncthreads();
      const uint32_t set = threadIdx.x / kColumns, column = threadIdx.x % kColumns, block = column / 32;
      float o[kOwn][2] = {};
#pragma unroll 1
      for (uint32_t i = 0; i < kPages; ++i) {
        if (!has_page(range, i)) continue;
        const uint8_t* codes = reinterpret_cast<const uint8_t*>(shared.codes) + i * 16 * kColumns + column;
#pragma unroll
        for (uint32_t j = 0; j < 16; ++j) {
          const uint32_t at = i * 16 + j;
          if (!range.has(at)) continue;
          const float low = shared.table[codes[j * kColumns] & 15][lane],
                      high = shared.table[codes[j * kColumns] >> 4][lane], d = shared.d[block][at];
#pragma unroll
          for (uint32_t own = 0; own < kOwn; ++own) {
            const uint32_t h = own * kSets + set;
            if (h >= n) continue;
            const float w = shared.weights[h][at] * d;
            o[own][0] = __fmaf_rn(w, low, o[own][0]);
            o[own][1] = __fmaf_rn(w, high, o[own][1]);
          }
        }
      }
#pragma unroll
      for (uint32_t own = 0; own < kOwn; ++own) {
        const uint32_t h = own * kSets + set;
        if (h >= n) continue;
#pragma unroll
        for (uint32_t half = 0; half < 2; ++half) {
          const uint32_t i = block * kv::kBlock + 32 * half + column % 32;
          if (!is_whole) {
            record_at(args, first_head + h, chunk)[i] = o[own][half];
            continue;
          }
          float* of = total + (h0 + h) * total_pitch + i;
          *of = is_first ? o[own][half] : __fmaf_rn(o[own][half], shared.after[h], *of * shared.before[h]);
        }
      }
      __syncthreads();
    }
  }
  if (is_whole) write_row<kThreads>(args, c, total);
}

template <bool kIsR8>
__device__ __forceinline__ void attend_rotated(const OpArgs& args) {
  ZRT_DYNAMIC_SHARED(float, memory);
  __shared__ Shared shared;
  let_next_start();
  const bool is_token = has_row(args, blockIdx.x);
  wait_for_places(args);
  wait_for_inputs();
  if (!is_token) return;
  const auto c = args.constants<push::FlashAttn>();
  switch (c.v_head_dim) {
    case 64: return attend<kIsR8, 64>(args, c, shared, memory);
    case 128: return attend<kIsR8, 128>(args, c, shared, memory);
    default: return attend<kIsR8, 256>(args, c, shared, memory);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads) flash_attn_r8(const __grid_constant__ OpArgs args) {
  attend_rotated<true>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads) flash_attn_r4(const __grid_constant__ OpArgs args) {
  attend_rotated<false>(args);
}

// The heads of y, in place. A warp a head. Grid: tokens, and four warps' work.
extern "C" __global__ void __launch_bounds__(128) flash_attn_rotate_back(const __grid_constant__ OpArgs args) {
  let_next_start();
  wait_for_inputs();
  const auto c = args.constants<push::FlashAttn>();
  const uint32_t head = blockIdx.y * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (!has_row(args, blockIdx.x) || head >= c.n_heads) return;
  float* y =
      args.buffer<float>(binding::Attention::y) + (static_cast<uint64_t>(blockIdx.x) * c.n_heads + head) * c.v_head_dim;
  float x[rotated::kRegisters];
#pragma unroll
  for (uint32_t r = 0; r < rotated::kRegisters; ++r) x[r] = r * 32 < c.v_head_dim ? y[lane + 32 * r] : 0.0f;
  rotated::rotate_back(x, c.v_head_dim);
#pragma unroll
  for (uint32_t r = 0; r < rotated::kRegisters; ++r)
    if (r * 32 < c.v_head_dim) y[lane + 32 * r] = x[r];
}
