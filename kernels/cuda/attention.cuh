// What the kernels of attention share: cells as floats, and sums in the order of docs/arithmetic.md, rule 5.
#pragma once

#include "kernels/cuda/kv.cuh"
#include "kernels/cuda/row_tiles.cuh"

namespace zinc_rt::cuda {

constexpr uint32_t kChunk = kAttendChunk;  // positions

struct F32Cell {
  static constexpr int kBytes = 4;
  static __device__ float at(const uint8_t* cell, uint32_t i) { return reinterpret_cast<const float*>(cell)[i]; }
  static __device__ float2 pair(const uint8_t* cell, uint32_t i) { return reinterpret_cast<const float2*>(cell)[i]; }
};
struct F16Cell {
  static constexpr int kBytes = 2;
  static __device__ float at(const uint8_t* cell, uint32_t i) {
    return widen_f16(reinterpret_cast<const uint16_t*>(cell)[i]);
  }
  static __device__ float2 pair(const uint8_t* cell, uint32_t i) {
    return widen_f16_pair(reinterpret_cast<const uint32_t*>(cell)[i]);
  }
};
struct Q8Cell {
  static constexpr int kBytes = 1;  // not staged
  static __device__ float at(const uint8_t* cell, uint32_t i) {
    const uint8_t* block = cell + i / 32 * 34;
    return zinc_rt::f16_to_f32(*reinterpret_cast<const uint16_t*>(block)) *
           static_cast<float>(static_cast<int8_t>(block[2 + i % 32]));
  }
};

__device__ __forceinline__ uint32_t first_seen(uint32_t window, uint32_t pos) {
  return window > 0 && pos >= window ? pos - window + 1 : 0;
}

// What of a chunk is seen: the positions [begin, end), counted from its first.
struct Range {
  uint32_t begin, end;
  __device__ __forceinline__ bool has(uint32_t at) const { return at - begin < end - begin; }
};

// A page of K or V.
__device__ __forceinline__ const uint8_t* page_at(const OpArgs& args, bool is_key, int32_t page) {
  return args.buffer<const uint8_t>(is_key ? binding::Attention::kv_k : binding::Attention::kv_v) +
         static_cast<uint64_t>(static_cast<uint32_t>(page)) *
             args.symbols[is_key ? symbol::Attention::pitch_kv_k : symbol::Attention::pitch_kv_v];
}
// Whether the range of a chunk's positions has some of its i-th 16.
__device__ __forceinline__ bool has_page(Range range, uint32_t i) {
  return i * 16 < range.end && i * 16 + 16 > range.begin;
}

// Pages of a chunk by the lanes of a warp: lane l has that of the chunk's l % 8-th 16 tokens. pages: of the slot.
__device__ __forceinline__ int32_t own_page(const int32_t* pages, uint32_t chunk, Range range) {
  const uint32_t i = threadIdx.x % 32 % (kChunk / 16);
  return has_page(range, i) ? pages[chunk * (kChunk / 16) + i] : 0;
}
__device__ __forceinline__ int32_t page_of(int32_t own_page, uint32_t i) {
  return __shfl_sync(0xFFFFFFFFu, own_page, static_cast<int>(i));
}

// A tile: tokens [first, first + n) of the step, of one slot, one after another.
struct Tokens {
  uint32_t first, n;
};

// Finds where tiles of up to `most` tokens begin. The positions of a tile lie in one aligned block of `most` positions.
// starts: a bit for each token of the step. The threads are together at its end.
template <uint32_t kThreads>
__device__ __forceinline__ void find_starts(const OpArgs& args, uint32_t most, uint32_t* starts) {
  const int32_t *positions = args.buffer<const int32_t>(binding::Attention::pos),
                *slots = args.buffer<const int32_t>(binding::Attention::slot);
  const uint32_t n = args.dim(symbol::AttentionTiles::rows), words = (n + 31) / 32;
  constexpr uint32_t kAhead = 8;  // tokens of a thread that are asked for at once
  for (uint32_t first = threadIdx.x; first < words * 32; first += kAhead * kThreads) {
    bool is_start[kAhead];
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j) {
      const uint32_t t = first + j * kThreads, own = min(t, n - 1), before = own > 0 ? own - 1 : 0;
      const int32_t pos = positions[own];
      const bool is_next = (slots[own] == slots[before]) & (pos == positions[before] + 1);
      is_start[j] = (t < n) & ((t == 0) | !is_next | (static_cast<uint32_t>(pos) % most == 0));
    }
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j) {
      const uint32_t word = (first + j * kThreads) / 32, bits = __ballot_sync(0xFFFFFFFFu, is_start[j]);
      if (threadIdx.x % 32 == 0 && word < words) starts[word] = bits;
    }
  }
  __syncthreads();
}

// The i-th tile to compute, or one without tokens where there are fewer. The last tokens come first, since those of a
// prompt see the most positions. Where all tiles run at once, two on a multiprocessor, the second half comes in the
// other order: a multiprocessor whose first workgroup has much to do gets a second one with little. starts: a bit for
// each token. n_tiles: the number of tiles.
template <uint32_t kThreads>
__device__ __forceinline__ Tokens find_tile(const OpArgs& args, uint32_t i, uint32_t* starts, uint32_t& n_tiles) {
  const uint32_t n = args.dim(symbol::AttentionTiles::rows), words = (n + 31) / 32;
  find_starts<kThreads>(args, args.symbols[symbol::AttentionTiles::tile_tokens], starts);
  n_tiles = 0;
  for (uint32_t word = 0; word < words; ++word) n_tiles += __popc(starts[word]);
  if (i >= n_tiles) return {0, 0};
  const uint32_t half = (n_tiles + 1) / 2;
  uint32_t tile = i < half || n_tiles > args.symbols[symbol::AttentionTiles::tiles_at_once]
                      ? i
                      : n_tiles - 1 - (i - half);  // from the last
  for (uint32_t word = words, next = n; word-- > 0;) {
    uint32_t bits = starts[word];
    const auto n_bits = static_cast<uint32_t>(__popc(bits));
    if (tile >= n_bits) {
      tile -= n_bits;
      if (bits != 0) next = word * 32 + __popc((bits & -bits) - 1);
      continue;
    }
    for (uint32_t later = tile + 1; later < n_bits; ++later) bits &= bits - 1;
    const uint32_t start = __popc((bits & -bits) - 1);
    bits &= bits - 1;
    if (bits != 0) next = word * 32 + __popc((bits & -bits) - 1);
    return {word * 32 + start, next - (word * 32 + start)};
  }
  return {0, 0};
}

// use(tokens) for each tile of this workgroup, every gridDim.y-th. starts: as find_tile's; use() may overwrite it once
// its threads have met.
template <uint32_t kThreads, class Use>
__device__ __forceinline__ void for_own_tiles(const OpArgs& args, uint32_t* starts, const Use& use) {
  for (uint32_t i = blockIdx.y, n_tiles = i + 1; i < n_tiles; i += gridDim.y) {
    const Tokens tokens = find_tile<kThreads>(args, i, starts, n_tiles);
    if (tokens.n == 0) return;
    use(tokens);
    __syncthreads();
  }
}

// A run is a tile of several tokens at a deep position, in a step of few tokens. flash_attn_runs.cu computes runs,
// whose tokens share K and V; flash_attn_staged.cu computes the other tokens. pos: of the first of n tokens. most:
// tokens of a tile at most (run_tokens).
__device__ __forceinline__ bool is_run(uint32_t window, uint32_t pos, uint32_t n, uint32_t most) {
  return n >= min(kAttendRunTokens, most) && pos / kChunk - first_seen(window, pos) / kChunk + 1 >= kAttendRunChunks;
}
// Whether token t is in a run. All lanes of a warp ask together.
__device__ __forceinline__ bool is_in_run(const OpArgs& args, uint32_t window, uint32_t t) {
  const uint32_t most = args.symbols[symbol::Attention::run_tokens];
  if (most == 0) return false;
  const int32_t *positions = args.buffer<const int32_t>(binding::Attention::pos),
                *slots = args.buffer<const int32_t>(binding::Attention::slot);
  const auto pos = static_cast<uint32_t>(positions[t]);
  const uint32_t n = args.dim(symbol::Attention::rows), before = pos % most;
  const int32_t slot = slots[t];
  // A bit for each token that may be in t's tile: the tokens around t whose place in the block of positions is the same
  // as their place in the step.
  uint64_t bits = 0;
#pragma unroll
  for (uint32_t half = 0; half < 64; half += 32) {
    const uint32_t i = half + threadIdx.x % 32, at = t + i - before;  // before the step: large
    const bool is_of =
        i < most && at < n && slots[at] == slot && positions[at] - positions[t] == static_cast<int32_t>(i - before);
    bits |= static_cast<uint64_t>(__ballot_sync(0xFFFFFFFFu, is_of)) << half;
  }
  const uint64_t lower = (uint64_t{1} << before) - 1, gaps_before = ~bits & lower, gaps_after = ~bits & ~lower;
  const uint32_t first = gaps_before == 0 ? 0 : 64 - __clzll(static_cast<long long>(gaps_before)),
                 end = gaps_after == 0 ? 64 : __ffsll(static_cast<long long>(gaps_after)) - 1;
  return is_run(window, pos - before + first, end - first, most);
}

// How a workgroup copies the rows of a chunk. A row has room for kVectors vectors of 16 bytes, and a thread copies the
// same vector of every kRows-th row.
template <uint32_t kThreads, int kVectors>
struct Copies {
  static constexpr uint32_t kRows = kThreads / kVectors, kPasses = kChunk / kRows;
  int32_t page[kPasses];  // of the rows of this thread; negative: not seen

  // pages: from the chunk's first. All are asked for before the first is waited for.
  __device__ __forceinline__ Copies(const int32_t* pages, Range range) {
    const uint32_t row = threadIdx.x / kVectors;
    pages += row / 16;
#pragma unroll
    for (uint32_t i = 0; i < kPasses; ++i) page[i] = range.has(i * kRows + row) ? pages[i * kRows / 16] : -1;
  }
  // cache: the kv head in the first cell of page 0. Vectors of a row from `vectors` on become zeros. Rows that are not
  // seen become zeros too, unless they are to be left alone.
  template <bool kLeavesUnseen = false>
  __device__ __forceinline__ void start(uint8_t* tile, uint32_t pitch, const uint8_t* cache, uint32_t page_bytes,
                                        uint32_t cell, uint32_t vectors) const {
    const uint32_t row = threadIdx.x / kVectors, at = threadIdx.x % kVectors;
    tile += row * pitch + at * 16;
    cache += row % 16 * cell + at * 16;
#pragma unroll
    for (uint32_t i = 0; i < kPasses; ++i) {
      if (kLeavesUnseen && page[i] < 0) continue;
      copy_16_or_zeros(
          tile + i * kRows * pitch,
          cache + static_cast<uint64_t>(static_cast<uint32_t>(max(page[i], 0))) * page_bytes + i * kRows % 16 * cell,
          page[i] >= 0 && at < vectors);
    }
  }
};

// e^x for -104 <= x <= 0, the bits of exact::exp: with 64 added to it the exponent is that of a normal number, and the
// product rounds once where the result is none.
__device__ __forceinline__ float exp_of_nonpositive(float x) {
  const exact::ExpParts e = exact::exp_parts(x);
  return __uint_as_float(__float_as_uint(e.p) + (static_cast<uint32_t>(e.n + 64) << 23)) * 0x1p-64f;
}

// e^x for x <= 0 or NaN: exact::exp without its branches, so that several are made side by side.
__device__ __forceinline__ float exp_of_difference(float x) {
  const bool is_there = x > -104.0f;
  const float e = exp_of_nonpositive(is_there ? x : 0.0f);
  return is_there ? e : x == x ? 0.0f : x;
}

// The fold of 16 lanes in registers.
__device__ __forceinline__ float fold(const float (&lane)[16]) {
  float v[8];
#pragma unroll
  for (int l = 0; l < 8; ++l) v[l] = lane[l] + lane[l + 8];
#pragma unroll
  for (int l = 0; l < 4; ++l) v[l] = v[l] + v[l + 4];
  v[0] = v[0] + v[2], v[1] = v[1] + v[3];
  return v[0] + v[1];
}

// The scores of the first n_rows rows of q with a cell of K. Rows are `width` floats apart, at most kRows of them.
template <class Cell, int kRows>
__device__ __forceinline__ void scores_of(const push::FlashAttn& c, const uint8_t* k_cell, const float* q,
                                          uint32_t width, uint32_t n_rows, float (&scores)[kRows]) {
  float dot[kRows] = {};
  for (uint32_t g = 0; g < c.head_dim; g += 256) {
    const uint32_t n = min(c.head_dim, g + 256);
    float lanes[kRows][16] = {};
    for (uint32_t i = g; i < n; i += 16) {
      float k[16];
#pragma unroll
      for (int l = 0; l < 16; ++l) k[l] = i + l < n ? Cell::at(k_cell, i + l) : 0.0f;
#pragma unroll
      for (int h = 0; h < kRows; ++h)
        if (h < n_rows)
#pragma unroll
          for (int l = 0; l < 16; ++l)
            if (i + l < n) lanes[h][l] = __fmaf_rn(k[l], q[h * width + i + l], lanes[h][l]);
    }
#pragma unroll
    for (int h = 0; h < kRows; ++h) dot[h] = dot[h] + fold(lanes[h]);
  }
#pragma unroll
  for (int h = 0; h < kRows; ++h) {
    scores[h] = dot[h] * c.scale;
    if (c.softcap > 0.0f) scores[h] = c.softcap * exact::tanh(scores[h] * exact::rcp(c.softcap));
  }
}

// QUANTIZE of a warp's values at `at` of row t of y, if the launch has a buffer for it (quantize_eight). If the launch
// also has a buffer for digits, the values in the layout of digit_rows.cu; the type is then q8a256, and warps have
// whole groups.
__device__ __forceinline__ void quantize_values(const OpArgs& args, const Eight& v, uint32_t t, uint32_t k,
                                                uint32_t at) {
  if (args.buffers[binding::Attention::quantized] == nullptr) return;
  quantize_to_tiles(args.symbols[symbol::Attention::quantized_dtype], v, args.buffers[binding::Attention::quantized],
                    args.dim(symbol::Attention::rows), t, k, at, args.buffers[binding::Attention::digits],
                    args.symbols[symbol::Attention::digit_columns]);
}

// Writes y of the workgroup's heads, and its quantized values, from the merged o, maximum and sum of each head. kIsSum:
// o is to be divided by the sum; else it is y.
template <uint32_t kThreads, bool kIsSum = true>
__device__ __forceinline__ void write_row(const OpArgs& args, const push::FlashAttn& c, const float* total) {
  const uint32_t t = blockIdx.x, k = c.n_heads * c.v_head_dim,
                 values = args.symbols[symbol::Attention::group] * c.v_head_dim;
  for (uint32_t begin = threadIdx.x / 32 * 256; begin < values; begin += kThreads / 32 * 256) {
    const uint32_t first = begin + first_of_eight(), at = blockIdx.y * values + first;
    Eight all{};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t i = first + 16 * half;
      if (i >= values) continue;
      const float *of = total + i / c.v_head_dim * (c.v_head_dim + 2),
                  r = kIsSum ? exact::rcp(of[c.v_head_dim + 1]) : 1.0f;
      float* v = all.v + 4 * half;
#pragma unroll
      for (int j = 0; j < 4; ++j) v[j] = kIsSum ? of[i % c.v_head_dim + j] * r : of[i % c.v_head_dim + j];
      *reinterpret_cast<float4*>(args.buffer<float>(binding::Attention::y) + static_cast<uint64_t>(t) * k + at +
                                 16 * half) = make_float4(v[0], v[1], v[2], v[3]);
    }
    quantize_values(args, all, t, k, first < values ? at : k);
  }
}

// What a kernel for heads of kDim values knows of them; 0: of any.
template <uint32_t kDim>
__device__ __forceinline__ push::FlashAttn with_heads_of(push::FlashAttn c) {
  if constexpr (kDim != 0) c.head_dim = c.v_head_dim = kDim;
  return c;
}

// Where a chunk of a query head leaves its values, maximum and sum for flash_attn_merge. head: counted through all
// tokens of the step.
__device__ __forceinline__ float* record_at(const OpArgs& args, uint64_t head, uint32_t chunk) {
  return static_cast<float*>(args.scratch) +
         (head * args.symbols[symbol::Attention::chunks] + chunk) * args.symbols[symbol::Attention::floats];
}

}  // namespace zinc_rt::cuda
