// Rows of W (quantized, weights.cuh) times rows of x (quantized, args.h): y[t][m] = dot(w[m], x[t]) + bias[m], in the
// order of docs/arithmetic.md, rule 3. A workgroup has a few rows of x and some tiles of 16 rows of W. 8 of its warps
// take the groups of 256 of its tiles in turn, each by mma.m16n8k32 (or k16, where scales are of 16 values), and leave
// the group's v in shared memory, from where the other warps add them up in order while the next are made. A warp's
// next groups are always on their way to shared memory, across tiles. Integer sums are exact in any order, so no shape
// changes a bit.
#pragma once

#include "kernels/sm_90/linear_job.cuh"

namespace zinc_rt::cuda {

constexpr int kColumnPitch = 20;  // floats from a column of v to the next: no bank twice in a store

// What a lane of a warp reads of a group of a tile, which lies in shared memory.
template <Format F>
struct Group {
  const uint8_t* at;
  uint32_t n_steps, lane;  // steps: 8, or fewer in the last group

  __device__ __forceinline__ Step step(int s) const { return load_step<F, FromShared>(at, n_steps, s, lane); }
  // Of the lane's first or second row.
  __device__ __forceinline__ uint32_t scale(int r, uint32_t s) const {
    return load_scale<F, FromShared>(at + planes_bytes<F>(n_steps), s, lane / 4 + 8 * r);
  }
  __device__ __forceinline__ KScales scales(int r) const {
    uint32_t words[4], word;
    load_scales<F, FromShared>(at + planes_bytes<F>(8), lane / 4 + 8 * r, words, word);
    return k_scales<F>(words, word);
  }
};

// x of a launch, and what v of a group is: of up to 8 kN rows of x. A lane knows the rows of x that it reads: those of
// the columns that the B and the C operands of an mma have in it.
template <Format F, int kN>
struct Columns {
  using T = Traits<F>;
  static constexpr bool kSigned = T::kP8 != 0 || T::kTable != 0;
  static constexpr int kColumnTiles = kN, kColumns = 8 * kN;
  Q8Rows x;
  uint32_t k, lane, b_row[kN], c_row[kN][2];

  template <class RowAt>
  __device__ __forceinline__ void set_rows(const RowAt& row_at) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      b_row[n] = row_at(n * 8 + lane / 4);
      c_row[n][0] = row_at(n * 8 + lane % 4 * 2);
      c_row[n][1] = row_at(n * 8 + lane % 4 * 2 + 1);
    }
  }

  __device__ __forceinline__ void ask(uint32_t, uint32_t) {}

  // v of a group, and the scale of x where v meets it later, to shared memory.
  __device__ __forceinline__ void run(const Group<F>& group, uint32_t g, float* to) const {
    float v[kN][4];
    if constexpr (T::kBlock == 32)
      blocks(group, g, v);
    else
      supers(group, g, v);
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) to[(n * 8 + lane % 4 * 2 + i % 2) * kColumnPitch + lane / 4 + i / 2 * 8] = v[n][i];
      if (T::kBlock == 256 && lane % 4 == 0)
        to[(n * 8 + lane / 4) * kColumnPitch + 16] = x.d[static_cast<uint64_t>(b_row[n]) * (k / 256) + g];
    }
  }

 private:
  __device__ __forceinline__ uint2 operand_b(int n, uint32_t g, int s) const {
    return *reinterpret_cast<const uint2*>(x.qs + static_cast<uint64_t>(b_row[n]) * k + g * 256 + s * 32 +
                                           lane % 4 * 8);
  }

  __device__ __forceinline__ void blocks(const Group<F>& group, uint32_t g, float (&v)[kN][4]) const {
#pragma unroll
    for (int n = 0; n < kN; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) v[n][c] = 0.0f;
    // Of one column tile all of x is asked for first.
    constexpr int kFirst = kN == 1 ? 8 : 1;
    constexpr bool kSums = T::kOffset != 0 || T::kMin != 0;
    uint2 first_b[kFirst];
    float first_d[kFirst][2];
    int first_sum[kFirst][2];
    const auto ask = [&](int to, int n, int s) {
      first_b[to] = operand_b(n, g, s);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const uint64_t block = static_cast<uint64_t>(c_row[n][i]) * (k / 32) + g * 8 + s;
        first_d[to][i] = x.d[block];
        first_sum[to][i] = kSums ? static_cast<const int32_t*>(x.sums)[block] : 0;
      }
    };
    if constexpr (kN == 1) {
#pragma unroll
      for (int s = 0; s < kFirst; ++s)
        if (s < group.n_steps) ask(s, 0, s);
    }
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      if (s >= group.n_steps) break;
      uint32_t a[4];
      operand<F>(group.step(s), a);
      const uint32_t scales[2] = {group.scale(0, s), group.scale(1, s)};
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        if constexpr (kN > 1) ask(0, n, s);
        const int here = kN == 1 ? s : 0;
        const float(&dx)[2] = first_d[here];
        const int(&sum)[2] = first_sum[here];
        int c[4] = {-T::kOffset * sum[0], -T::kOffset * sum[1], -T::kOffset * sum[0], -T::kOffset * sum[1]};
        mma32<kSigned>(c, a, first_b[here]);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const uint32_t scale = scales[i / 2];
          v[n][i] = __fmaf_rn(static_cast<float>(c[i]) * block_scale<F>(scale), dx[i % 2], v[n][i]);
          if constexpr (T::kMin != 0)
            v[n][i] = __fmaf_rn(static_cast<float>(sum[i % 2]) * block_min(scale), dx[i % 2], v[n][i]);
        }
      }
    }
  }

  __device__ __forceinline__ void supers(const Group<F>& group, uint32_t g, float (&v)[kN][4]) const {
    const KScales scales[2] = {group.scales(0), group.scales(1)};
    int isum[kN][4] = {};
    // Of one column tile all of x is asked for first.
    uint2 first_b[kN == 1 ? 8 : 1], sums[kN];
    if constexpr (kN == 1) {
#pragma unroll
      for (int s = 0; s < 8; ++s) first_b[s] = operand_b(0, g, s);
    }
    if constexpr (kHasSums<F>) {
#pragma unroll
      for (int n = 0; n < kN; ++n)
        sums[n] = *reinterpret_cast<const uint2*>(static_cast<const int16_t*>(x.sums) +
                                                  static_cast<uint64_t>(b_row[n]) * (k / 16) + g * 16 + lane % 4 * 4);
    }
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      uint32_t a[4];
      operand<F>(group.step(s), a);
#pragma unroll
      for (int n = 0; n < kN; ++n)
        add_step<F, kSigned>(isum[n], a, kN == 1 ? first_b[s] : operand_b(n, g, s), scales, s);
    }
    uint32_t m[2] = {};
    if constexpr (kHasSums<F>) m[0] = sums_operand<F>(scales[0], lane), m[1] = sums_operand<F>(scales[1], lane);
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      int c[4] = {};
      if constexpr (kHasSums<F>) add_sums(c, m, sums[n]);
#pragma unroll
      for (int i = 0; i < 4; ++i) v[n][i] = super_value<F>(scales[i / 2], isum[n][i], c[i]);
    }
  }
};

// The same of one row of x: the B operand of step s has x in its column s and else zeros, so that one sum collects all
// steps of a group, each in its own column, and every lane has two steps of two rows of W left.
template <Format F>
struct OneColumn {
  using T = Traits<F>;
  static constexpr bool kSigned = T::kP8 != 0 || T::kTable != 0;
  static constexpr int kColumnTiles = 0, kColumns = 1;
  Q8Rows x;
  uint32_t k, lane;
  // Where the row's values, sums and scales begin that the lane reads of each group.
  const int8_t* qs_at;
  const uint8_t* sums_at;
  const float* d_at;
  // What a lane wants of x of a group, on its way before the group is there: its step of the B operand; sums and scales
  // of the two steps that it will have left.
  uint2 own, sums;
  float d[2];

  template <class RowAt>
  __device__ __forceinline__ void set_rows(const RowAt& row_at) {
    const uint64_t value = static_cast<uint64_t>(row_at(0)) * k;
    qs_at = x.qs + value + lane / 4 * 32 + lane % 4 * 8;
    sums_at = static_cast<const uint8_t*>(x.sums) + value / 8 + lane % 4 * 8;
    d_at = x.d + (T::kBlock == 256 ? value / 256 : value / 32 + lane % 4 * 2);
  }

  __device__ __forceinline__ void ask(uint32_t g, uint32_t n_steps) {
    if constexpr (T::kBlock == 256) {
      own = *reinterpret_cast<const uint2*>(qs_at + g * 256);
      sums = uint2{0, 0};
      if constexpr (kHasSums<F>) sums = *reinterpret_cast<const uint2*>(sums_at + g * 32);
      d[0] = d_at[g];
    } else {
      own = sums = uint2{0, 0};
      if (lane / 4 < n_steps) own = *reinterpret_cast<const uint2*>(qs_at + g * 256);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const bool is_step = lane % 4 * 2 + i < n_steps;
        d[i] = is_step ? d_at[g * 8 + i] : 0.0f;
        if constexpr (T::kOffset != 0 || T::kMin != 0)
          (i == 0 ? sums.x : sums.y) = is_step ? reinterpret_cast<const uint32_t*>(sums_at + g * 32)[i] : 0;
      }
    }
  }

  __device__ __forceinline__ void run(const Group<F>& group, uint32_t, float* to) const {
    float v[2];
    if constexpr (T::kBlock == 32)
      blocks(group, v);
    else
      supers(group, v);
    if (lane % 4 != 3) return;
    to[lane / 4] = v[0], to[lane / 4 + 8] = v[1];
    if (T::kBlock == 256 && lane == 3) to[16] = d[0];
  }

 private:
  __device__ __forceinline__ uint2 operand_b(int s) const { return lane / 4 == s ? own : uint2{0, 0}; }
  // Words of one of four pairs.
  __device__ __forceinline__ uint32_t of_pair(uint32_t a, uint32_t b, uint32_t c, uint32_t d) const {
    return lane % 4 < 2 ? (lane % 4 == 0 ? a : b) : (lane % 4 == 2 ? c : d);
  }

  __device__ __forceinline__ void blocks(const Group<F>& group, float (&v)[2]) const {
    const uint32_t first = lane % 4 * 2;
    const int sum[2] = {static_cast<int>(sums.x), static_cast<int>(sums.y)};
    int c[2][4];  // of the even steps and the odd ones, so that one need not wait for the other
#pragma unroll
    for (int i = 0; i < 4; ++i) c[0][i] = -T::kOffset * sum[i % 2], c[1][i] = 0;
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      if (s >= group.n_steps) break;
      uint32_t a[4];
      operand<F>(group.step(s), a);
      mma32<kSigned>(c[s % 2], a, operand_b(s));
    }
    v[0] = v[1] = 0.0f;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      uint32_t scale[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) scale[i] = first + i < group.n_steps ? group.scale(r, first + i) : 0;
      const float product[2] = {static_cast<float>(c[0][2 * r] + c[1][2 * r]) * block_scale<F>(scale[0]),
                                static_cast<float>(c[0][2 * r + 1] + c[1][2 * r + 1]) * block_scale<F>(scale[1])};
      // Blocks in order: from pair to pair.
#pragma unroll
      for (uint32_t pair = 0; pair < 4; ++pair) {
        if (pair > 0) v[r] = __shfl_up_sync(0xFFFFFFFFu, v[r], lane % 4 == pair ? 1 : 0);
        if (lane % 4 != pair) continue;
#pragma unroll
        for (int i = 0; i < 2; ++i)
          if (first + i < group.n_steps) {
            v[r] = __fmaf_rn(product[i], d[i], v[r]);
            if constexpr (T::kMin != 0) v[r] = __fmaf_rn(static_cast<float>(sum[i]) * block_min(scale[i]), d[i], v[r]);
          }
      }
    }
  }

  __device__ __forceinline__ void supers(const Group<F>& group, float (&v)[2]) const {
    constexpr bool kIsHalved = T::kSub == 16;
    const uint32_t sum[2] = {sums.x, sums.y};  // two of 16 values each
    const auto half_sum = [&](int i, int half) { return static_cast<int16_t>(half == 0 ? sum[i] : sum[i] >> 16); };
    // Of the first and the last 16 values of a step, or of the even steps and the odd ones: neither waits for the
    // other.
    int c[2][4];
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int i = 0; i < 4; ++i) c[half][i] = -T::kOffset * half_sum(i % 2, half);
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      uint32_t a[4];
      operand<F>(group.step(s), a);
      const uint2 b = operand_b(s);
      if constexpr (kIsHalved) {
        mma16<kSigned>(c[0], a[0], a[1], b.x);
        mma16<kSigned>(c[1], a[2], a[3], b.y);
      } else {
        mma32<kSigned>(c[s % 2], a, b);
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const KScales scales = group.scales(r);
      int isum = 0, msum = 0;
      // The sub-scales of the pair's steps: two bytes of a word, or four.
      const auto own_bytes = [&](const uint32_t(&words)[4]) {
        if constexpr (kIsHalved) return of_pair(words[0], words[1], words[2], words[3]);
        return (lane % 4 < 2 ? words[0] : words[1]) >> (16 * (lane % 2));
      };
      KScales own_scales{};
      own_scales.sc[0] = own_bytes(scales.sc);
      const uint32_t m = T::kMin != 0 ? own_bytes(scales.m) : 0;
      const auto minimum = [&](int i) { return static_cast<int>(m >> (8 * i) & 0xFF); };
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int first = c[0][2 * r + i], second = c[1][2 * r + i];
        if constexpr (kIsHalved) {
          isum += sub_scale<F>(own_scales, 2 * i) * first + sub_scale<F>(own_scales, 2 * i + 1) * second;
          if constexpr (T::kMin != 0) msum += minimum(2 * i) * half_sum(i, 0) + minimum(2 * i + 1) * half_sum(i, 1);
        } else {
          isum += sub_scale<F>(own_scales, i) * (first + second);
          if constexpr (T::kMin != 0) msum += minimum(i) * (half_sum(i, 0) + half_sum(i, 1));
        }
      }
#pragma unroll
      for (int width = 1; width < 4; width *= 2) {
        isum += __shfl_xor_sync(0xFFFFFFFFu, isum, width);
        if constexpr (T::kMin != 0) msum += __shfl_xor_sync(0xFFFFFFFFu, msum, width);
      }
      v[r] = T::kMin != 0 ? __fmaf_rn(static_cast<float>(isum), scales.d, static_cast<float>(msum) * -scales.dmin)
                          : static_cast<float>(isum) * scales.d;
    }
  }
};

// The groups of tiles that follow one another.
struct Walk {
  uint32_t tile, group;  // of all tiles of the grid; in the tile

  // Tiles that it went on.
  __device__ __forceinline__ uint32_t advance(uint32_t step, uint32_t n_groups) {
    uint32_t n = 0;
    for (group += step; group >= n_groups; ++n) group -= n_groups;
    tile += n;
    return n;
  }
};

template <Format F, class C>
struct FewShape {
  static constexpr uint32_t kVectors = 256 / Traits<F>::kBlock * Traits<F>::kBytes, kSlot = 16 * kVectors,
                            kDepth = linear_depth(C::kColumnTiles, kSlot), kAdders = linear_adders(C::kColumnTiles);
};

// A group of the rows after the last whole tile, to where it is used from.
template <Format F>
__device__ __noinline__ void pack_last_rows(uint8_t* slot, const Job& job, uint64_t row_bytes, uint32_t g,
                                            uint32_t n_steps, uint32_t lane) {
  const uint32_t first = job.first_tile * 16;
  for (uint32_t s = 0; s < n_steps; ++s)
    pack_rows<F>(slot, job.w + first * row_bytes + row_bytes_of<F>(g * 256), row_bytes, job.part->rows - first, n_steps,
                 s, lane);
}

// Grid: workgroups that share the tiles of all parts and of all items of experts; blocks of columns.
template <Format F, class C>
__device__ __forceinline__ void linear(const LinearArgs& args) {
  using T = Traits<F>;
  using S = FewShape<F, C>;
  constexpr uint32_t kPlane = C::kColumns * kColumnPitch;  // floats of a group's v
  ZRT_DYNAMIC_SHARED(float, shared);
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t k = args.k, n_groups = (k + 255) / 256, last_steps = (k - (n_groups - 1) * 256) / 32;
  const uint64_t row_bytes = row_bytes_of<F>(k);
  const bool is_dense = args.choices == 0;
  const auto steps_of = [&](uint32_t g) { return g + 1 < n_groups ? 8 : last_steps; };
  uint8_t* const slots = reinterpret_cast<uint8_t*>(shared + 2 * kWarps * kPlane) + warp * S::kDepth * S::kSlot;
  uint32_t n_rows = 0;
  // The workgroup's tiles, of all parts and items one after another.
  uint32_t first_tile = 0, end_tile = 0;
  const auto take_tiles = [&](uint32_t n_tiles) {
    first_tile = n_tiles * blockIdx.x / gridDim.x;
    end_tile = n_tiles * (blockIdx.x + 1) / gridDim.x;
  };
  const auto job_at = [&](uint32_t tile) {
    return is_dense ? job_of(args, tile, 0, n_rows) : job_of(args, tile % args.n_blocks, tile / args.n_blocks, n_rows);
  };
  // The weights that the warp asks for next: up to tile run_end they follow one another.
  Walk asked{};
  uint32_t run_end = 0;
  const uint8_t* from = nullptr;
  bool is_plain_run = false;  // rows after the last whole tile, which lie as in the file: packed when they are wanted
  uint32_t is_plain = 0;      // by slot
  const auto ask = [&](uint32_t to) {
    if (asked.tile < end_tile) {
      if (asked.tile >= run_end) {
        const Job job = job_at(asked.tile);
        const uint32_t n_whole = job.part->rows / 16;
        is_plain_run = job.first_tile >= n_whole;
        run_end = asked.tile + (is_plain_run ? 1 : n_whole - job.first_tile);
        from = job.w + job.first_tile * 16 * row_bytes + asked.group * S::kSlot + 16 * lane;
      }
      if (is_plain_run) {
        is_plain |= 1u << to;
      } else {
        const uint32_t vectors = T::kBlock == 256 ? S::kVectors : steps_of(asked.group) * T::kBytes;
        uint8_t* slot = slots + to * S::kSlot + 16 * lane;
#pragma unroll
        for (uint32_t i = 0; i < S::kVectors; i += 32)
          if (i + lane < vectors) copy_16(slot + 16 * i, from + 16 * i);
      }
    }
    end_copy_batch();
    from += kWarps * S::kSlot;
    // A tile's last group may be a short one.
    const uint32_t n = asked.advance(kWarps, n_groups);
    if (T::kBlock == 32 && n > 0) from -= n * (n_groups * S::kSlot - 16 * row_bytes);
  };
  const auto ask_first = [&] {
    if (warp >= kWarps) return;
    asked = {first_tile, 0};
    asked.advance(warp, n_groups);
    for (uint32_t i = 0; i < S::kDepth; ++i) ask(i);
  };
  // Weights never change, so the first are on their way before the inputs are there, where they do not depend on them.
  if (is_dense) {
    take_tiles(args.n_blocks);
    ask_first();
  }
  wait_for_inputs();
  let_next_start();
  n_rows = rows_of_x(args);
  if (!is_dense) {
    take_tiles(args.n_blocks * items_of(args, n_rows));
    ask_first();
  }
  const uint32_t first_column = blockIdx.y * C::kColumns;
  if (is_dense && first_column >= n_rows) return;
  const uint32_t n_rounds = ((end_tile - first_tile) * n_groups + kWarps - 1) / kWarps;
  C columns{q8_rows(const_cast<void*>(args.x), static_cast<uint64_t>(n_rows) * (is_dense ? 1 : args.x_rows), k), k,
            lane};
  if (warp < kWarps) {
    Walk used{first_tile, 0};
    used.advance(warp, n_groups);
    uint32_t used_tile = kAbsent, slot = 0;
    const auto ask_x = [&] {
      if (used.tile >= end_tile) return;
      if (used_tile == kAbsent || (!is_dense && used.tile != used_tile)) {
        used_tile = used.tile;
        const Job job = job_at(used_tile);
        columns.set_rows([&](uint32_t column) {  // columns past the last read its row again
          return x_row(args, job, min(first_column + column, job.n_columns - 1));
        });
      }
      columns.ask(used.group, steps_of(used.group));
    };
    ask_x();
    for (uint32_t round = 0; round < n_rounds; ++round) {
      if (used.tile < end_tile) {
        uint8_t* at = slots + slot * S::kSlot;
        wait_for_copy_batches<S::kDepth - 1>();
        if (is_plain >> slot & 1) {
          is_plain ^= 1u << slot;
          pack_last_rows<F>(at, job_at(used.tile), row_bytes, used.group, steps_of(used.group), lane);
        }
        __syncwarp();
        columns.run({at, steps_of(used.group), lane}, used.group, shared + (round % 2 * kWarps + warp) * kPlane);
        __syncwarp();
        ask(slot);
        slot = slot + 1 < S::kDepth ? slot + 1 : 0;
      }
      used.advance(kWarps, n_groups);
      ask_x();
      __syncthreads();
    }
    return;
  }
  constexpr int kValues = C::kColumns * 16, kEach = (kValues + 32 * S::kAdders - 1) / (32 * S::kAdders);
  Walk added{first_tile, 0};
  float acc[kEach] = {};
  for (uint32_t round = 0; round < n_rounds; ++round) {
    __syncthreads();
    // The warps' v in order: of a tile so many as the round has.
    for (uint32_t i = 0; i < kWarps && added.tile < end_tile;) {
      const uint32_t n = min(kWarps - i, n_groups - added.group);
      const bool is_last = added.group + n == n_groups;
      const Job job = is_last ? job_at(added.tile) : Job{};
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        const uint32_t at = threadIdx.x - 32 * kWarps + e * 32 * S::kAdders;
        if (at >= kValues) break;
        const float* from = shared + (round % 2 * kWarps + i) * kPlane + at / 16 * kColumnPitch;
        if (added.group == 0) acc[e] = 0.0f;
#pragma unroll
        for (uint32_t j = 0; j < kWarps; ++j)
          if (j < n) {
            const float v = from[j * kPlane + at % 16];
            acc[e] = T::kBlock == 256 ? __fmaf_rn(v, from[j * kPlane + 16], acc[e]) : acc[e] + v;
          }
        const uint32_t m = job.first_tile * 16 + at % 16, column = first_column + at / 16;
        if (is_last && m < job.part->rows && column < job.n_columns) put(args, job, column, m, acc[e]);
      }
      added.advance(n, n_groups);
      i += n;
    }
  }
}

}  // namespace zinc_rt::cuda
