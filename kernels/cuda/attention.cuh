// What the attention kernels share: reading cells of the KV cache as floats, finding tiles of tokens that share K and
// V, copying chunks to shared memory, and the sums in the order of docs/arithmetic.md, rule 5.
#pragma once

#include "kernels/common/sink.h"
#include "kernels/cuda/kv.cuh"
#include "kernels/cuda/row_tiles.cuh"

namespace zinc_rt::cuda {

constexpr uint32_t kChunk = kAttendChunk;  // positions per chunk

// F32Cell, F16Cell and Q8Cell read value i of a cell (a token's K or V) of that cache type as a float; pair() reads
// values 2 i and 2 i + 1.
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
  // Kernels with this type do not copy cells to shared memory, so only f32 and f16 need the true number.
  static constexpr int kBytes = 1;
  static __device__ float at(const uint8_t* cell, uint32_t i) {
    const uint8_t* block = cell + i / 32 * 34;
    return zinc_rt::f16_to_f32(*reinterpret_cast<const uint16_t*>(block)) *
           static_cast<float>(static_cast<int8_t>(block[2 + i % 32]));
  }
};

// Returns the first position that a token at `pos` sees. window 0: no sliding window.
__device__ __forceinline__ uint32_t first_seen(uint32_t window, uint32_t pos) {
  return window > 0 && pos >= window ? pos - window + 1 : 0;
}

// The positions of a chunk that a row sees: [begin, end), counted from the chunk's first.
struct Range {
  uint32_t begin, end;
  __device__ __forceinline__ bool has(uint32_t at) const { return at - begin < end - begin; }
};

// Returns the address of a page of K or V.
__device__ __forceinline__ const uint8_t* page_at(const OpArgs& args, bool is_key, int32_t page) {
  return args.buffer<const uint8_t>(is_key ? binding::Attention::kv_k : binding::Attention::kv_v) +
         static_cast<uint64_t>(static_cast<uint32_t>(page)) *
             args.symbols[is_key ? symbol::Attention::pitch_kv_k : symbol::Attention::pitch_kv_v];
}
// Whether the range includes some of the chunk's i-th 16 positions, which are one page.
__device__ __forceinline__ bool has_page(Range range, uint32_t i) {
  return i * 16 < range.end && i * 16 + 16 > range.begin;
}

// own_page() returns the lane's share of a chunk's 8 pages: lane l has page l % 8, or 0 if its positions are not seen.
// page_of() then returns page i of the chunk to all lanes. pages: the slot's row of the page table.
__device__ __forceinline__ int32_t own_page(const int32_t* pages, uint32_t chunk, Range range) {
  const uint32_t i = threadIdx.x % 32 % (kChunk / 16);
  return has_page(range, i) ? pages[chunk * (kChunk / 16) + i] : 0;
}
__device__ __forceinline__ int32_t page_of(int32_t own_page, uint32_t i) {
  return __shfl_sync(0xFFFFFFFFu, own_page, static_cast<int>(i));
}

// A tile: the tokens [first, first + n) of the step. They are consecutive tokens of one slot.
struct Tokens {
  uint32_t first, n;
};

// Finds the tokens at which tiles of up to `most` tokens begin. All positions of a tile are in one aligned block of
// `most` positions; is_in_run() relies on that. starts: receives one bit per token of the step. Ends with a barrier.
template <uint32_t kThreads>
__device__ __forceinline__ void find_starts(const OpArgs& args, uint32_t most, uint32_t* starts) {
  const int32_t *positions = args.buffer<const int32_t>(binding::Attention::pos),
                *slots = args.buffer<const int32_t>(binding::Attention::slot);
  const uint32_t n = args.dim(symbol::AttentionTiles::rows), words = (n + 31) / 32;
  constexpr uint32_t kAhead = 8;  // tokens that a thread loads before it uses the first
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

// Returns the i-th tile in the order in which tiles are computed, or one without tokens if there are fewer. n_tiles:
// receives the number of tiles. starts: scratch memory, one bit per token.
// The last tokens of the step come first, because those of a prompt see the most positions. If all tiles run at once,
// two per multiprocessor, the second half of the order is reversed: a multiprocessor whose first workgroup has much
// work then gets a second one with little.
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
                      : n_tiles - 1 - (i - half);  // counted from the last tile
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

// Calls use(tokens) for each tile of this workgroup, which is every gridDim.y-th. starts: as for find_tile(); use() may
// overwrite it after a barrier.
template <uint32_t kThreads, class Use>
__device__ __forceinline__ void for_own_tiles(const OpArgs& args, uint32_t* starts, const Use& use) {
  for (uint32_t i = blockIdx.y, n_tiles = i + 1; i < n_tiles; i += gridDim.y) {
    const Tokens tokens = find_tile<kThreads>(args, i, starts, n_tiles);
    if (tokens.n == 0) return;
    use(tokens);
    __syncthreads();
  }
}

// Whether a tile of n tokens is a run: several tokens that see at least kAttendRunChunks chunks, in a step of few
// tokens. flash_attn_runs.cu computes runs, whose tokens share K and V; flash_attn_staged.cu computes the other tokens.
// pos: position of the tile's first token. most: the most tokens that a tile may have (run_tokens).
__device__ __forceinline__ bool is_run(uint32_t window, uint32_t pos, uint32_t n, uint32_t most) {
  return n >= min(kAttendRunTokens, most) && pos / kChunk - first_seen(window, pos) / kChunk + 1 >= kAttendRunChunks;
}
// Whether token t is in a run. All lanes of a warp call this together, with the same t.
__device__ __forceinline__ bool is_in_run(const OpArgs& args, uint32_t window, uint32_t t) {
  const uint32_t most = args.symbols[symbol::Attention::run_tokens];
  if (most == 0) return false;
  const int32_t *positions = args.buffer<const int32_t>(binding::Attention::pos),
                *slots = args.buffer<const int32_t>(binding::Attention::slot);
  const auto pos = static_cast<uint32_t>(positions[t]);
  const uint32_t n = args.dim(symbol::Attention::rows), before = pos % most;
  const int32_t slot = slots[t];
  // Bit i is for the token that would be i-th in t's aligned block of positions. It is set if the step has that token
  // at the place that follows from t's place.
  uint64_t bits = 0;
#pragma unroll
  for (uint32_t half = 0; half < 64; half += 32) {
    // If the token would be before the step's first, this wraps to a large number.
    const uint32_t i = half + threadIdx.x % 32, at = t + i - before;
    const bool is_of =
        i < most && at < n && slots[at] == slot && positions[at] - positions[t] == static_cast<int32_t>(i - before);
    bits |= static_cast<uint64_t>(__ballot_sync(0xFFFFFFFFu, is_of)) << half;
  }
  const uint64_t lower = (uint64_t{1} << before) - 1, gaps_before = ~bits & lower, gaps_after = ~bits & ~lower;
  const uint32_t first = gaps_before == 0 ? 0 : 64 - __clzll(static_cast<long long>(gaps_before)),
                 end = gaps_after == 0 ? 64 : __ffsll(static_cast<long long>(gaps_after)) - 1;
  return is_run(window, pos - before + first, end - first, most);
}

// Copies the rows of a chunk (the cells of one kv head) to shared memory. A row has room for kVectors vectors of 16
// bytes. Thread t copies vector t % kVectors of the rows t / kVectors, t / kVectors + kRows, ...
template <uint32_t kThreads, int kVectors>
struct Copies {
  static constexpr uint32_t kRows = kThreads / kVectors, kPasses = kChunk / kRows;
  int32_t page[kPasses];  // the page of each of this thread's rows; negative: the row is not seen

  // Loads the page numbers, all at once. pages: the page table from the chunk's first page on.
  __device__ __forceinline__ Copies(const int32_t* pages, Range range) {
    const uint32_t row = threadIdx.x / kVectors;
    pages += row / 16;
#pragma unroll
    for (uint32_t i = 0; i < kPasses; ++i) page[i] = range.has(i * kRows + row) ? pages[i * kRows / 16] : -1;
  }
  // Starts the copies. tile: the chunk in shared memory, with `pitch` bytes per row. cache: the address of the kv head
  // in the first cell of page 0; page_bytes and cell are the bytes of a page and of a cell. Vectors of a row from
  // number `vectors` on become zeros. Rows that are not seen become zeros too, unless kLeavesUnseen: then they are not
  // written.
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

// Returns e^x for -104 <= x <= 0 with the bits of exact::exp. The exponent is computed 64 too large, so that it is that
// of a normal number. The product with 2^-64 then rounds once if the result is subnormal.
__device__ __forceinline__ float exp_of_nonpositive(float x) {
  const exact::ExpParts e = exact::exp_parts(x);
  return __uint_as_float(__float_as_uint(e.p) + (static_cast<uint32_t>(e.n + 64) << 23)) * 0x1p-64f;
}

// Returns e^x for x <= 0 or NaN: exact::exp without branches, so that a thread can compute several at the same time.
__device__ __forceinline__ float exp_of_difference(float x) {
  const bool is_there = x > -104.0f;
  const float e = exp_of_nonpositive(is_there ? x : 0.0f);
  return is_there ? e : x == x ? 0.0f : x;
}

// Folds the 16 lanes of the order of sums if one thread has all of them in registers.
__device__ __forceinline__ float fold(const float (&lane)[16]) {
  float v[8];
#pragma unroll
  for (int l = 0; l < 8; ++l) v[l] = lane[l] + lane[l + 8];
#pragma unroll
  for (int l = 0; l < 4; ++l) v[l] = v[l] + v[l + 4];
  v[0] = v[0] + v[2], v[1] = v[1] + v[3];
  return v[0] + v[1];
}

// Computes the scores of the first n_rows rows of q (at most kRows; row h begins at q + h * width) with one cell of K.
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

// Quantizes a lane's eight values, which begin at index `at` of row t of y, if the launch has a buffer for that. If it
// also has a buffer for digits, the values are also stored in the layout of digit_rows.cu; the type is then q8a256, and
// each warp has a whole group.
__device__ __forceinline__ void quantize_values(const OpArgs& args, const Eight& v, uint32_t t, uint32_t k,
                                                uint32_t at) {
  if (args.buffers[binding::Attention::quantized] == nullptr) return;
  quantize_to_tiles(args.symbols[symbol::Attention::quantized_dtype], v, args.buffers[binding::Attention::quantized],
                    args.dim(symbol::Attention::rows), t, k, at, args.buffers[binding::Attention::digits],
                    args.symbols[symbol::Attention::digit_columns]);
}

// Writes y of the workgroup's heads, and its quantized values. total: for each head o, the maximum and the sum. kIsSum:
// o must still be divided by the sum; else o is y.
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

// Returns the constants with head sizes that the compiler knows, in a kernel compiled for heads of kDim values. kDim 0:
// heads of any size.
template <uint32_t kDim>
__device__ __forceinline__ push::FlashAttn with_heads_of(push::FlashAttn c) {
  if constexpr (kDim != 0) c.head_dim = c.v_head_dim = kDim;
  return c;
}

// Returns the factors of a query head's sink; those that change nothing if there are no sinks. most: the largest score
// of the head's chunks.
__device__ __forceinline__ SinkFactors factors_of_sink(const OpArgs& args, uint32_t head, float most) {
  const float* sinks = args.buffer<const float>(binding::Attention::sinks);
  return sinks == nullptr ? SinkFactors{} : sink_factors(sinks[head], most);
}

// Returns the record of a chunk of a query head: its values, maximum and sum, which flash_attn_merge reads. head: the
// query head's number, counted through all tokens of the step.
__device__ __forceinline__ float* record_at(const OpArgs& args, uint64_t head, uint32_t chunk) {
  return static_cast<float*>(args.scratch) +
         (head * args.symbols[symbol::Attention::chunks] + chunk) * args.symbols[symbol::Attention::floats];
}

}  // namespace zinc_rt::cuda
