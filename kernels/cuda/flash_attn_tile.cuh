// Tile computes attention for one tile. A tile is neighbouring tokens of one slot, whose positions are in one aligned
// block of positions. It has a row for each token and each query head of a kv head: row r is token r / group and head
// r % group. There are at most 64 rows (32 if heads are wider than 128 values).
// - scores: K of a chunk of positions is in shared memory. The products of q and K are added up in 16 lanes: lane l
//   adds those of the head's values i with i % 16 == l (docs/arithmetic.md, rule 4). A thread computes lane threadIdx.x
//   % 16. K is stored so that the values of one lane are adjacent. A thread has up to 64 values of q in registers. It
//   multiplies them by K of 8 positions at a time
// - values: a thread computes kRows / 8 rows by kSteps values of the head. It adds up V over the positions in order
// Rows of K and V have room for 16 * kSteps values. If heads are narrower, q and K are padded with zeros, which change
// no sum. flash_attn_tile.cu merges the results of chunks one after another. In flash_attn_runs.cu each chunk leaves a
// record, and flash_attn_merge merges the records.
#pragma once

#include "kernels/cuda/attention.cuh"

namespace zinc_rt::cuda {

// Returns the range of a chunk that a row sees, if its token is at `pos` and the chunk begins at or before it.
__device__ __forceinline__ Range seen_of(uint32_t window, uint32_t pos, uint32_t chunk) {
  const uint32_t end = min(kChunk, pos + 1 - chunk * kChunk);
  return {min(max(chunk * kChunk, first_seen(window, pos)) - chunk * kChunk, end), end};
}

// Computes tiles for one workgroup: the caller sets kv_head and calls run(). Cell says how values of the cache are
// read. Heads have up to 16 * kSteps values.
template <class Cell, int kSteps>
struct Tile {
  static constexpr uint32_t kThreads = kAttendTileThreads, kHalfWarps = kThreads / 16, kPitch = kAttendTilePitch;
  static constexpr int kAhead = 8;  // positions that a thread multiplies q by at a time
  static constexpr uint32_t kWidth = 16 * kSteps, kRows = attend_tile_rows(kWidth), kRowBytes = kWidth * Cell::kBytes,
                            kKPitch = attend_tile_k_pitch(kWidth, Cell::kBytes);
  static constexpr bool kHasBoth = attend_tile_has_both(kWidth, Cell::kBytes);
  // Vectors (loads) that a lane needs of a row of K, and a thread of a row of V, and the values of each.
  static constexpr int kOfVector = kSteps * Cell::kBytes < 16 ? kSteps : 16 / Cell::kBytes,
                       kVectors = kSteps / kOfVector, kVectorBytes = kOfVector * Cell::kBytes;
  // kQRows: rows of q that a half warp multiplies. kVRows: rows whose values a thread adds up.
  static constexpr int kQRows = 64 / (kSteps < 8 ? 8 : kSteps), kVRows = kRows / kHalfWarps;
  static constexpr uint32_t kParts = 16 / kQRows;  // lanes that share the scores of a row after the fold
  static constexpr int kKept = kAhead / kParts;    // number of scores that each of them has

  const OpArgs& args;
  const push::FlashAttn c;
  const uint32_t group;
  uint32_t kv_head = 0;
  float* const weights;  // before weigh_scores(): the products of q and K
  uint8_t *const k_tile, *const v_tile;

  // What the workgroup knows about each row of the tile.
  struct Row {
    // Factors by which the merged o and sum (before), and those of the chunk (after), are multiplied when the chunk is
    // merged.
    float before[kRows], after[kRows];
    // The largest score of each row so far, and the sum of its weights.
    float maxima[kRows], sums[kRows];
    // The position of each row's token.
    uint32_t pos[kRows];
  };
  Row& row;

  // shared: the workgroup's dynamic shared memory, of attend_tile_bytes bytes: weights, K and V (in the place of K
  // unless kHasBoth). own: static shared memory for the rows' state.
  __device__ __forceinline__ Tile(const OpArgs& of, uint4* shared, Row& own)
      : args(of),
        c(of.constants<push::FlashAttn>()),
        group(c.n_heads / c.n_kv_heads),
        weights(reinterpret_cast<float*>(shared)),
        k_tile(reinterpret_cast<uint8_t*>(shared) + kRows * kPitch * 4),
        v_tile(kHasBoth ? k_tile + kChunk * kKPitch : k_tile),
        row(own) {}

  // Returns the address of the kv head in the first cell of page 0. buffer: K or V; dim: values of a head.
  __device__ __forceinline__ const uint8_t* cell_of(int buffer, uint32_t dim) const {
    return args.buffer<const uint8_t>(buffer) + kv_head * dim * Cell::kBytes;
  }
  // Returns value i of a vector as a float.
  __device__ __forceinline__ static float value(const uint32_t (&words)[4], int i) {
    if constexpr (Cell::kBytes == 4) return __uint_as_float(words[i]);
    return widen_f16(static_cast<uint16_t>(words[i / 2] >> (i % 2 * 16)));
  }
  // Loads a vector from shared memory and converts it to floats.
  __device__ __forceinline__ static void load_vector(const uint8_t* from, float (&v)[kOfVector]) {
    uint32_t words[4];
    if constexpr (kVectorBytes == 16) {
      const uint4 in = *reinterpret_cast<const uint4*>(from);
      words[0] = in.x, words[1] = in.y, words[2] = in.z, words[3] = in.w;
    } else {
      const uint2 in = *reinterpret_cast<const uint2*>(from);
      words[0] = in.x, words[1] = in.y;
    }
#pragma unroll
    for (int i = 0; i < kOfVector; ++i) v[i] = value(words, i);
  }

  // Copies K of a chunk to shared memory and transposes it, so that the values of each lane of the order of sums are
  // adjacent. A thread loads the same vector of 16 bytes of each 16 values.
  __device__ __forceinline__ void stage_k(const int32_t* pages, Range range) const {
    constexpr uint32_t kOf16 = 16 / Cell::kBytes, kUnits = 16 / kOf16;
    const uint32_t cell = c.n_kv_heads * c.head_dim * Cell::kBytes;
#pragma unroll
    for (uint32_t first = 0; first < kChunk * kUnits; first += kThreads) {
      const uint32_t at = (first + threadIdx.x) / kUnits, part = threadIdx.x % kUnits;
      if (!range.has(at)) continue;
      const uint8_t* from =
          cell_of(binding::Attention::kv_k, c.head_dim) +
          static_cast<uint64_t>(static_cast<uint32_t>(pages[at / 16])) * args.symbols[symbol::Attention::pitch_kv_k] +
          at % 16 * cell + part * 16;
      uint32_t in[kSteps][4];
#pragma unroll
      for (uint32_t s = 0; s < kSteps; ++s) {
        uint4 v = make_uint4(0, 0, 0, 0);
        if (s * 16 + part * kOf16 < c.head_dim) v = *reinterpret_cast<const uint4*>(from + s * 16 * Cell::kBytes);
        in[s][0] = v.x, in[s][1] = v.y, in[s][2] = v.z, in[s][3] = v.w;
      }
#pragma unroll
      for (uint32_t i = 0; i < kOf16; ++i) {
        uint32_t out[kSteps * Cell::kBytes / 4];
#pragma unroll
        for (int s = 0; s < kSteps * Cell::kBytes / 4; ++s) {
          if constexpr (Cell::kBytes == 4)
            out[s] = in[s][i];
          else
            out[s] = __byte_perm(in[2 * s][i / 2], in[2 * s + 1][i / 2], i % 2 == 0 ? 0x5410 : 0x7632);
        }
        uint8_t* to = k_tile + at * kKPitch + (part * kOf16 + i) * kVectorBytes;
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
          if constexpr (kVectorBytes == 16)
            *reinterpret_cast<uint4*>(to + v * 16 * kVectorBytes) =
                make_uint4(out[4 * v], out[4 * v + 1], out[4 * v + 2], out[4 * v + 3]);
          else
            *reinterpret_cast<uint2*>(to + v * 16 * kVectorBytes) = uint2{out[0], out[1]};
        }
      }
    }
  }
  // Starts the copy of V of a chunk to shared memory.
  __device__ __forceinline__ void stage_v(const int32_t* pages, Range range) const {
    Copies<kThreads, kRowBytes / 16>(pages, range)
        .start(v_tile, kRowBytes, cell_of(binding::Attention::kv_v, c.v_head_dim),
               args.symbols[symbol::Attention::pitch_kv_v], c.n_kv_heads * c.v_head_dim * Cell::kBytes,
               c.v_head_dim * Cell::kBytes / 16);
  }

  // Folds sums over 16 lanes if each lane has sums of all: in each step, a lane keeps the lower half of its sums and
  // gets the other lane's sums for the same rows and positions in exchange for its upper half, until kLanes is 1.
  template <int kLanes, int kSums>
  __device__ __forceinline__ static void fold(float (&v)[kSums]) {
    constexpr int kLeft = kSums * kLanes / 16;
#pragma unroll
    for (int i = 0; i < kLeft; ++i) v[i] = v[i] + __shfl_xor_sync(0xFFFFFFFFu, v[i + kLeft], kLanes);
    if constexpr (kLanes > 1) fold<kLanes / 2>(v);
  }

  // Computes the products of q and K of the tile's rows, at the positions of a range and at some beside it that nobody
  // reads. A half warp has kQRows rows; the fewer rows the tile has, the more half warps share the positions. Each lane
  // orders its rows and positions differently (row r ^ lane / kParts, and likewise for positions), so that in the fold
  // it always gives away the upper half of its sums.
  __device__ __forceinline__ void score(Tokens tokens, Range range) const {
    const uint32_t n_rows = tokens.n * group, half = threadIdx.x / 16, lane = threadIdx.x % 16;
    uint32_t n_groups = 1;
    while (n_groups * kQRows < n_rows) n_groups *= 2;
    const uint32_t first_row = half % n_groups * kQRows;
    float q[kQRows][kSteps];
#pragma unroll
    for (uint32_t r = 0; r < kQRows; ++r) {
      const uint32_t of = first_row + (r ^ lane / kParts), t = tokens.first + of / group;
      const float* from = args.buffer<const float>(binding::Attention::q) +
                          (static_cast<uint64_t>(t) * c.n_heads + kv_head * group + of % group) * c.head_dim + lane;
#pragma unroll
      for (uint32_t s = 0; s < kSteps; ++s) q[r][s] = of < n_rows && s * 16 + lane < c.head_dim ? from[s * 16] : 0.0f;
    }
    __syncthreads();  // all of K has been stored
    if ((half & ~1u) % n_groups * kQRows >= n_rows) return;
    // The number of the block of kAhead positions relative to the warp's: the two half warps of a warp compute
    // neighbouring blocks.
    const uint32_t apart = n_groups == 1 ? half % 2 : 0;
    for (uint32_t block = range.begin / kAhead / 2 * 2 + half / n_groups - apart; block * kAhead < range.end;
         block += kHalfWarps / n_groups) {
      const uint32_t at = (block + apart) * kAhead;
      const uint8_t* k_at = k_tile + at * kKPitch + lane * kVectorBytes;
      float v[kQRows * kAhead];
#pragma unroll
      for (int p = 0; p < kAhead; ++p) {
        const uint8_t* from = k_at + ((p / kKept ^ lane % kParts) * kKept + p % kKept) * kKPitch;
#pragma unroll
        for (int i = 0; i < kVectors; ++i) {
          float k[kOfVector];
          load_vector(from + i * 16 * kVectorBytes, k);
#pragma unroll
          for (int j = 0; j < kOfVector; ++j)
#pragma unroll
            for (int r = 0; r < kQRows; ++r)
              v[r * kAhead + p] = __fmaf_rn(k[j], q[r][i * kOfVector + j], i + j == 0 ? 0.0f : v[r * kAhead + p]);
        }
      }
      fold<8>(v);
      float* to = weights + (first_row + lane / kParts) * kPitch + at + lane % kParts * kKept;
      if constexpr (kKept == 4)
        *reinterpret_cast<float4*>(to) = make_float4(v[0], v[1], v[2], v[3]);
      else
        *reinterpret_cast<float2*>(to) = make_float2(v[0], v[1]);
    }
  }

  // Returns the record of row r for a chunk: values, maximum and sum.
  __device__ __forceinline__ float* record_of(Tokens tokens, uint32_t r, uint32_t chunk) const {
    const uint64_t head = static_cast<uint64_t>(tokens.first + r / group) * c.n_heads + kv_head * group + r % group;
    return record_at(args, head, chunk);
  }

  // Turns the products of q and K into weights, exp(score - maximum), and computes the factors by which chunks are
  // merged. A half warp computes a row; a lane has every 16th position.
  template <bool kHasSoftcap, bool kIsPart>
  __device__ __forceinline__ void weigh_scores(Tokens tokens, uint32_t chunk) const {
    const uint32_t n_rows = tokens.n * group;
    const uint32_t half = threadIdx.x / 16, lane = threadIdx.x % 16;
    const float scale = c.scale, softcap = c.softcap, per_softcap = exact::rcp(softcap);
    // The rows of a warp's two half warps are two apart, so that they use different banks.
    const uint32_t first_row = (half & ~3u) + (half & 1) * 2 + (half >> 1 & 1);
    float own_most = 0.0f, own_sum = 0.0f;
#pragma unroll 1
    for (uint32_t i = 0; i * kHalfWarps < n_rows; ++i) {
      const uint32_t r = first_row + i * kHalfWarps;  // Some rows do not exist; nobody reads their weights.
      const Range seen = seen_of(c.window, row.pos[r], chunk);
      float* of = weights + r * kPitch + lane;
      float v[kChunk / 16], most = -__int_as_float(0x7f800000), sum = 0.0f;
#pragma unroll
      for (uint32_t j = 0; j < kChunk / 16; ++j) {
        v[j] = of[16 * j] * scale;
        if (kHasSoftcap) v[j] = softcap * exact::tanh(v[j] * per_softcap);
        if (seen.has(lane + 16 * j) && v[j] > most) most = v[j];
      }
#pragma unroll
      for (int w = 8; w > 0; w /= 2) {
        const float other = __shfl_xor_sync(0xFFFFFFFFu, most, w);
        most = other > most ? other : most;
      }
#pragma unroll
      for (uint32_t j = 0; j < kChunk / 16; ++j) {
        const float w = exp_of_difference(v[j] - most);
        of[16 * j] = w;
        if (seen.has(lane + 16 * j)) sum = sum + w;
      }
      sum = fold_half_warp(sum);
      if (lane == i) own_most = most, own_sum = sum;
    }
    const uint32_t r = first_row + lane * kHalfWarps;
    if (lane >= kVRows || r >= n_rows) return;
    if (kIsPart) {
      float* to = record_of(tokens, r, chunk) + c.v_head_dim;
      to[0] = own_most, to[1] = own_sum;
    } else if (chunk == first_seen(c.window, row.pos[r]) / kChunk) {
      row.maxima[r] = own_most, row.sums[r] = own_sum;
    } else {
      const float was = row.maxima[r], now = own_most > was ? own_most : was;
      row.before[r] = exact::exp(was - now), row.after[r] = exact::exp(own_most - now);
      row.maxima[r] = now;
      row.sums[r] = __fmaf_rn(own_sum, row.after[r], row.sums[r] * row.before[r]);
    }
  }

  // A thread adds up the values of kVRows rows: threadIdx.x / 16 + r * kHalfWarps. Of each row it has every 16th
  // vector.
  using Values = float[kVRows][kSteps];

  // Adds V of positions that all rows see to o of the thread's first kN rows, four positions at a time.
  template <int kN>
  __device__ __forceinline__ void sum_even(Values& o, uint32_t begin, uint32_t end) const {
    const uint8_t* v_at = v_tile + threadIdx.x % 16 * kVectorBytes;
    const float* w_at = weights + threadIdx.x / 16 * kPitch;
#pragma unroll 1
    for (uint32_t at = begin; at < end; at += 4) {
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        float v[4][kOfVector];
#pragma unroll
        for (int p = 0; p < 4; ++p) load_vector(v_at + (at + p) * kRowBytes + i * 16 * kVectorBytes, v[p]);
#pragma unroll
        for (int r = 0; r < kN; ++r) {
          const float4 w = *reinterpret_cast<const float4*>(w_at + r * kHalfWarps * kPitch + at);
          float* of = o[r] + i * kOfVector;
#pragma unroll
          for (int j = 0; j < kOfVector; ++j) of[j] = __fmaf_rn(w.x, v[0][j], of[j]);
#pragma unroll
          for (int j = 0; j < kOfVector; ++j) of[j] = __fmaf_rn(w.y, v[1][j], of[j]);
#pragma unroll
          for (int j = 0; j < kOfVector; ++j) of[j] = __fmaf_rn(w.z, v[2][j], of[j]);
#pragma unroll
          for (int j = 0; j < kOfVector; ++j) of[j] = __fmaf_rn(w.w, v[3][j], of[j]);
        }
      }
    }
  }
  // Adds V of positions that some of the rows do not see: each row only adds those that it sees.
  __device__ __forceinline__ void sum_edge(Values& o, const Range (&seen)[kVRows], uint32_t begin, uint32_t end) const {
    const uint8_t* v_at = v_tile + threadIdx.x % 16 * kVectorBytes;
    const float* w_at = weights + threadIdx.x / 16 * kPitch;
#pragma unroll 1
    for (uint32_t at = begin; at < end; ++at) {
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        float v[kOfVector];
        load_vector(v_at + at * kRowBytes + i * 16 * kVectorBytes, v);
#pragma unroll
        for (int r = 0; r < kVRows; ++r) {
          if (!seen[r].has(at)) continue;
          const float w = w_at[r * kHalfWarps * kPitch + at];
#pragma unroll
          for (int j = 0; j < kOfVector; ++j) o[r][i * kOfVector + j] = __fmaf_rn(w, v[j], o[r][i * kOfVector + j]);
        }
      }
    }
  }
  // Computes o of a chunk.
  __device__ __forceinline__ void sum_chunk(Values& o, Tokens tokens, uint32_t chunk) const {
    const uint32_t n_rows = tokens.n * group, half = threadIdx.x / 16;
    const Range first = seen_of(c.window, row.pos[0], chunk), last = seen_of(c.window, row.pos[n_rows - 1], chunk);
    Range seen[kVRows];
#pragma unroll
    for (int r = 0; r < kVRows; ++r) {
      const uint32_t of = half + r * kHalfWarps;
      seen[r] = of < n_rows ? seen_of(c.window, row.pos[of], chunk) : Range{0, 0};
#pragma unroll
      for (int i = 0; i < kSteps; ++i) o[r][i] = 0.0f;
    }
    // The positions that all rows see, rounded to whole fours.
    const uint32_t begin = min((last.begin + 3) / 4 * 4, last.end), end = max(first.end / 4 * 4, begin);
    sum_edge(o, seen, first.begin, begin);
    if (n_rows > kVRows / 2 * kHalfWarps)
      sum_even<kVRows>(o, begin, end);
    else if (n_rows > kHalfWarps)
      sum_even<kVRows / 2>(o, begin, end);
    else
      sum_even<1>(o, begin, end);
    sum_edge(o, seen, end, last.end);
  }
  // Merges o of a chunk into `total`. A chunk before the first one that a row sees adds values that the first one then
  // overwrites.
  __device__ __forceinline__ void merge_chunk(Values& total, const Values& o, uint32_t chunk) const {
#pragma unroll
    for (int r = 0; r < kVRows; ++r) {
      const uint32_t of = threadIdx.x / 16 + r * kHalfWarps;
      const bool is_first = chunk == first_seen(c.window, row.pos[of]) / kChunk;
      const float before = row.before[of], after = row.after[of];
#pragma unroll
      for (int i = 0; i < kSteps; ++i)
        total[r][i] = is_first ? o[r][i] : __fmaf_rn(o[r][i], after, total[r][i] * before);
    }
  }
  // Stores the thread's values of a row, multiplied by `first` and then by `by`.
  __device__ __forceinline__ void write_values(float* to, const float (&values)[kSteps], float first, float by) const {
#pragma unroll
    for (int i = 0; i < kSteps; i += 4) {
      const uint32_t at = (i / kOfVector * 16 + threadIdx.x % 16) * kOfVector + i % kOfVector;
      if (at < c.v_head_dim)
        *reinterpret_cast<float4*>(to + at) = make_float4(values[i] * first * by, values[i + 1] * first * by,
                                                          values[i + 2] * first * by, values[i + 3] * first * by);
    }
  }
  // Divides the merged values by the sums, and writes y of the tile's rows.
  __device__ __forceinline__ void write(const Values& total, Tokens tokens) const {
#pragma unroll
    for (int r = 0; r < kVRows; ++r) {
      const uint32_t of = threadIdx.x / 16 + r * kHalfWarps, t = tokens.first + of / group;
      if (of >= tokens.n * group) break;
      const uint32_t head = kv_head * group + of % group;
      const SinkFactors sink = factors_of_sink(args, head, row.maxima[of]);
      write_values(
          args.buffer<float>(binding::Attention::y) + (static_cast<uint64_t>(t) * c.n_heads + head) * c.v_head_dim,
          total[r], sink.of_total, exact::rcp(row.sums[of] * sink.of_total + sink.share));
    }
  }
  // Stores o of a chunk in the records of the tile's rows.
  __device__ __forceinline__ void leave_record(const Values& o, Tokens tokens, uint32_t chunk) const {
#pragma unroll
    for (int r = 0; r < kVRows; ++r) {
      const uint32_t of = threadIdx.x / 16 + r * kHalfWarps;
      if (of >= tokens.n * group) break;
      write_values(record_of(tokens, of, chunk), o[r], 1.0f, 1.0f);
    }
  }

  // Computes the chunks [chunk, end), out of those that the tile's tokens see. They are merged and y is written; or, if
  // kIsPart, each leaves a record.
  template <bool kIsPart>
  __device__ __forceinline__ void run(Tokens tokens, uint32_t chunk, uint32_t end) const {
    const int32_t *positions = args.buffer<const int32_t>(binding::Attention::pos),
                  *slots = args.buffer<const int32_t>(binding::Attention::slot);
    const auto pos = static_cast<uint32_t>(positions[tokens.first]);
    const int32_t* pages = args.buffer<const int32_t>(binding::Attention::page_table) +
                           static_cast<uint64_t>(slots[tokens.first]) * args.dim(symbol::Attention::m);
    if (threadIdx.x < kRows) row.pos[threadIdx.x] = pos + min(threadIdx.x / group, tokens.n - 1);
    Values total = {};
#pragma unroll 1
    for (; chunk < end; ++chunk) {
      const Range range{seen_of(c.window, pos, chunk).begin, seen_of(c.window, pos + tokens.n - 1, chunk).end};
      const int32_t* of_chunk = pages + chunk * (kChunk / 16);
      __syncthreads();  // nobody reads the previous chunk in shared memory any more
      if constexpr (kHasBoth) stage_v(of_chunk, range);
      stage_k(of_chunk, range);
      score(tokens, range);
      __syncthreads();
      if constexpr (!kHasBoth) stage_v(of_chunk, range);
      if (c.softcap > 0.0f)
        weigh_scores<true, kIsPart>(tokens, chunk);
      else
        weigh_scores<false, kIsPart>(tokens, chunk);
      wait_for_copies();
      __syncthreads();
      Values o;
      sum_chunk(o, tokens, chunk);
      if constexpr (kIsPart)
        leave_record(o, tokens, chunk);
      else
        merge_chunk(total, o, chunk);
    }
    if constexpr (kIsPart) return;
    let_next_start();
    write(total, tokens);
  }
};

}  // namespace zinc_rt::cuda
