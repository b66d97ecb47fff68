// The product of linear.cuh for many rows of x, with the same bits. A stage of shared memory holds one group (256
// values of k) of W and x; the next stages are copied while one is used. Each warp has some tiles of W and column tiles
// of x, and adds up their groups itself, in order. All rows of W are in whole tiles.
#pragma once

#include "kernels/cuda/fixed_columns.cuh"

namespace zinc_rt::cuda {

// A workgroup computes kTilesOfBlock tiles of 16 rows of W by 8 * kWarpsN * kN rows of x. Its kWarpsOfM x kWarpsN warps
// divide these.
template <Format F, int kTilesOfBlock, int kWarpsOfM, int kWarpsN, int kN>
struct TileProduct {
  using T = Traits<F>;
  // Offsets of codes are subtracted from the codes themselves in formats with blocks of 32, and from the sums in
  // formats with blocks of 256.
  static constexpr bool kIsBlock32 = T::kBlock == 32, kLessens = kIsBlock32 && T::kOffset != 0;
  static constexpr bool kSigned = T::kP8 != 0 || T::kTable != 0 || kLessens;
  static constexpr int kTiles = kTilesOfBlock, kWarpsM = kWarpsOfM, kT = kTiles / kWarpsM, kOwnColumns = 8 * kN,
                       kThreads = 32 * kWarpsM * kWarpsN;
  static constexpr uint32_t kColumns = 8 * kWarpsN * kN, kGroupBytes = 256 / T::kBlock * T::kBytes,
                            kTileBytes = 16 * kGroupBytes;
  static constexpr ActType kAct = kActOf<F>;
  static constexpr bool kIsFixed = kAct == kQ16A256;
  static constexpr uint32_t kXPitch = kIsFixed ? kTileXPitch16 : kTileXPitch;
  static constexpr uint32_t kX = kTiles * kTileBytes, kSums = kX + kColumns * kXPitch,
                            kScales = kSums + (kIsFixed ? 0 : kColumns * 32),
                            kStageBytes = tile_stage_bytes(kTiles, kColumns, kGroupBytes, kAct);
  static constexpr int kStages = tile_stages(kTiles, kStageBytes);

  const LinearArgs& args;
  const Job& job;
  ActRows x;
  uint32_t lane, last_tile;
  const uint32_t* rows;  // the row of x of each column

  // Starts the copies of group g to a stage. n_steps: steps of 32 values, 8 or fewer in the last group.
  __device__ __forceinline__ void fill(uint8_t* stage, uint32_t g, uint32_t n_steps) const {
    const uint64_t row_bytes = row_bytes_of<F>(args.k), group_at = 16 * row_bytes_of<F>(g * 256);
    const uint32_t vectors = n_steps * 32 / T::kBlock * T::kBytes;  // vectors of 16 bytes of a tile
    constexpr uint32_t kVectors = kTileBytes / 16;
#pragma unroll
    for (uint32_t first = 0; first < kTiles * kVectors; first += kThreads) {
      const uint32_t i = first + threadIdx.x, tile = i / kVectors, vector = i % kVectors;
      if (tile >= kTiles || vector >= vectors) continue;
      copy_16(stage + i * 16, job.w + min(job.first_tile + tile, last_tile) * 16 * row_bytes + group_at + 16 * vector);
    }
    if constexpr (kIsFixed)
      fill_fixed(stage, g);
    else
      fill_x(stage, g, n_steps);
  }

  // acc += the group of a stage, in the order of docs/arithmetic.md. The warp's tiles begin at first_tile and its
  // columns at first_column of the workgroup's.
  __device__ __forceinline__ void add(const uint8_t* stage, uint32_t first_tile, uint32_t first_column,
                                      uint32_t n_steps, float (&acc)[kT][kN][4]) const {
    if constexpr (kIsFixed)
      add_fixed(stage, first_tile, first_column, acc);
    else if constexpr (kIsBlock32)
      add_blocks(stage, first_tile, first_column, n_steps, acc);
    else
      add_super(stage, first_tile, first_column, acc);
  }

 private:
  // Starts the copies of x of group g, with sums and scales.
  __device__ __forceinline__ void fill_x(uint8_t* stage, uint32_t g, uint32_t n_steps) const {
#pragma unroll
    for (uint32_t first = 0; first < kColumns * 16; first += kThreads) {
      const uint32_t column = (first + threadIdx.x) / 16, vector = threadIdx.x % 16;
      if (vector < 2 * n_steps)
        copy_16(stage + kX + column * kTileXPitch + 16 * vector,
                x.qs + static_cast<uint64_t>(rows[column]) * args.k + g * 256 + 16 * vector);
    }
    if constexpr (kIsBlock32) {
#pragma unroll
      for (uint32_t first = 0; first < kColumns * 8; first += kThreads) {
        const uint32_t at = first + threadIdx.x, step = at % 8;
        const uint64_t block = static_cast<uint64_t>(rows[at / 8]) * (args.k / 32) + g * 8 + step;
        if (step >= n_steps) continue;
        copy_4(stage + kSums + at * 4, static_cast<const int32_t*>(x.sums) + block);
        copy_4(stage + kScales + at * 4, x.d + block);
      }
    } else if (threadIdx.x < kColumns * 2) {
      const uint32_t column = threadIdx.x / 2, half = threadIdx.x % 2;
      const uint64_t block = static_cast<uint64_t>(rows[column]) * (args.k / 256) + g;
      copy_16(stage + kSums + column * 32 + 16 * half, static_cast<const int16_t*>(x.sums) + block * 16 + 8 * half);
      if (half == 0) copy_4(stage + kScales + column * 4, x.d + block);
    }
  }

  // Copies both digits of x, and the scales.
  __device__ __forceinline__ void fill_fixed(uint8_t* stage, uint32_t g) const {
#pragma unroll
    for (uint32_t first = 0; first < kColumns * 32; first += kThreads) {
      const uint32_t column = (first + threadIdx.x) / 32, vector = threadIdx.x % 32;
      copy_16(stage + kX + column * kXPitch + vector / 16 * kTileXLow + vector % 16 * 16,
              x.qs + (static_cast<uint64_t>(rows[column]) * args.k + g * 256) * 2 + 16 * vector);
    }
    if (threadIdx.x < kColumns)
      copy_4(stage + kScales + threadIdx.x * 4, x.d + static_cast<uint64_t>(rows[threadIdx.x]) * (args.k / 256) + g);
  }
  // The columns of operand B are arranged as in fixed_columns.cuh.
  __device__ __forceinline__ void add_fixed(const uint8_t* stage, uint32_t first_tile, uint32_t first_column,
                                            float (&acc)[kT][kN][4]) const {
    int high[kT][kN][2][4] = {}, low[kT][kN][2][4] = {};
    const auto group_of = [&](int t) { return Group<F>{stage + (first_tile + t) * kTileBytes, 8, lane}; };
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      uint32_t a[kT][2][4];
#pragma unroll
      for (int t = 0; t < kT; ++t)
#pragma unroll
        for (int plane = 0; plane < 2; ++plane) {
          const FixedPair pair = fixed_pair(group_of(t).at, plane, s / 2, lane);
#pragma unroll
          for (int j = 0; j < 4; ++j) a[t][plane][j] = pair.a[s % 2][j];
        }
#pragma unroll
      for (int n = 0; n < kN; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const auto* at =
              reinterpret_cast<const uint32_t*>(stage + kX + (first_column + n * 8 + lane / 8 * 2 + i) * kXPitch +
                                                lane / 4 % 2 * kTileXLow + s * 32 + lane % 4 * 4);
          const uint2 b{at[0], at[4]};
#pragma unroll
          for (int t = 0; t < kT; ++t) {
            mma32<true>(high[t][n][i], a[t][0], b);
            mma32<true>(low[t][n][i], a[t][1], b);
          }
        }
    }
#pragma unroll
    for (int t = 0; t < kT; ++t) {
      const float d[2] = {fixed_scale(group_of(t), 0), fixed_scale(group_of(t), 1)};
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        const float2 dx = *reinterpret_cast<const float2*>(stage + kScales + (first_column + n * 8 + lane % 4 * 2) * 4);
#pragma unroll
        for (int at = 0; at < 4; ++at) {
          const int r = at / 2, i = at % 2;
          const float v = fixed_value(high[t][n][i][2 * r], low[t][n][i][2 * r], high[t][n][i][2 * r + 1],
                                      low[t][n][i][2 * r + 1], d[r]);
          acc[t][n][at] = __fmaf_rn(v, i == 0 ? dx.x : dx.y, acc[t][n][at]);
        }
      }
    }
  }

  // Returns the lane's operand B of step s for column tile n.
  __device__ __forceinline__ uint2 operand_b(const uint8_t* stage, uint32_t first_column, int n, int s) const {
    return *reinterpret_cast<const uint2*>(stage + kX + (first_column + n * 8 + lane / 4) * kTileXPitch + s * 32 +
                                           lane % 4 * 8);
  }

  // Adds a group of a format with blocks of 32.
  __device__ __forceinline__ void add_blocks(const uint8_t* stage, uint32_t first_tile, uint32_t first_column,
                                             uint32_t n_steps, float (&acc)[kT][kN][4]) const {
    float v[kT][kN][4] = {};
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      if (s >= n_steps) break;
      uint32_t a[kT][4], scale[kT][2];
#pragma unroll
      for (int t = 0; t < kT; ++t) {
        const Group<F> group{stage + (first_tile + t) * kTileBytes, n_steps, lane};
        operand<F>(group.step(s), a[t]);
        if constexpr (kLessens) {
#pragma unroll
          for (uint32_t& codes : a[t]) codes = less_in_bytes(codes, T::kOffset);
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) scale[t][r] = group.scale(r, s);
      }
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        const uint2 b = operand_b(stage, first_column, n, s);
        float sum[2] = {}, dx[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const uint32_t at = ((first_column + n * 8 + lane % 4 * 2 + i) * 8 + s) * 4;
          if constexpr (T::kMin != 0) sum[i] = static_cast<float>(*reinterpret_cast<const int*>(stage + kSums + at));
          dx[i] = *reinterpret_cast<const float*>(stage + kScales + at);
        }
#pragma unroll
        for (int t = 0; t < kT; ++t) {
          int c[4] = {};
          mma32<kSigned>(c, a[t], b);
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            float& value = v[t][n][i];
            value = __fmaf_rn(static_cast<float>(c[i]) * block_scale<F>(scale[t][i / 2]), dx[i % 2], value);
            if constexpr (T::kMin != 0) value = __fmaf_rn(sum[i % 2] * block_min(scale[t][i / 2]), dx[i % 2], value);
          }
        }
      }
    }
#pragma unroll
    for (int t = 0; t < kT; ++t)
#pragma unroll
      for (int n = 0; n < kN; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) acc[t][n][i] = acc[t][n][i] + v[t][n][i];
  }

  // Adds a group of a format with blocks of 256.
  __device__ __forceinline__ void add_super(const uint8_t* stage, uint32_t first_tile, uint32_t first_column,
                                            float (&acc)[kT][kN][4]) const {
    const auto group_of = [&](int t) { return Group<F>{stage + (first_tile + t) * kTileBytes, 8, lane}; };
    KScales scales[kT][2];
#pragma unroll
    for (int t = 0; t < kT; ++t)
#pragma unroll
      for (int r = 0; r < 2; ++r) scales[t][r] = group_of(t).scales(r);
    int isum[kT][kN][4] = {};
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      uint32_t a[kT][4];
#pragma unroll
      for (int t = 0; t < kT; ++t) operand<F>(group_of(t).step(s), a[t]);
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        const uint2 b = operand_b(stage, first_column, n, s);
#pragma unroll
        for (int t = 0; t < kT; ++t) add_step<F, kSigned>(isum[t][n], a[t], b, scales[t], s);
      }
    }
    uint32_t m[kT][2] = {};
    if constexpr (kHasSums<F>) {
#pragma unroll
      for (int t = 0; t < kT; ++t)
#pragma unroll
        for (int r = 0; r < 2; ++r) m[t][r] = sums_operand<F>(scales[t][r], lane);
    }
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      uint2 sums{};
      if constexpr (kHasSums<F>)
        sums = *reinterpret_cast<const uint2*>(stage + kSums + (first_column + n * 8 + lane / 4) * 32 + lane % 4 * 8);
      float dx[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        dx[i] = *reinterpret_cast<const float*>(stage + kScales + (first_column + n * 8 + lane % 4 * 2 + i) * 4);
#pragma unroll
      for (int t = 0; t < kT; ++t) {
        int c[4] = {};
        if constexpr (kHasSums<F>) add_sums(c, m[t], sums);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          acc[t][n][i] = __fmaf_rn(super_value<F>(scales[t][i / 2], isum[t][n][i], c[i]), dx[i % 2], acc[t][n][i]);
      }
    }
  }
};

// Grid: (blocks of tiles of all parts (matrices), blocks of columns, items of experts). An item is rows of x that chose
// the same expert.
template <class P>
__device__ __forceinline__ void linear_tile(const LinearArgs& args) {
  ZRT_DYNAMIC_SHARED(float, shared);
  __shared__ uint32_t rows[P::kColumns];
  uint8_t* stages = reinterpret_cast<uint8_t*>(shared);
  begin_product(args);
  const uint32_t n_rows = rows_of_x(args), first_column = blockIdx.y * P::kColumns;
  const Job job = job_of<P::kTiles>(args, blockIdx.x, blockIdx.z, n_rows);
  if (first_column >= job.n_columns) return;
  const uint32_t k = args.k, n_groups = (k + 255) / 256, last_steps = (k - (n_groups - 1) * 256) / 32;
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x < P::kColumns)  // columns behind the last one read its row again
    rows[threadIdx.x] = x_row(args, job, min(first_column + threadIdx.x, job.n_columns - 1));
  __syncthreads();
  const P product{args,
                  job,
                  act_rows(P::kAct, const_cast<void*>(args.x),
                           static_cast<uint64_t>(n_rows) * (job.is_expert ? args.x_rows : 1), k),
                  lane,
                  job.part->rows / 16 - 1,
                  rows};
  const auto steps_of = [&](uint32_t g) { return g + 1 < n_groups ? 8 : last_steps; };
  constexpr int kStages = P::kStages;
#pragma unroll
  for (int g = 0; g < kStages - 1; ++g) {
    if (g < n_groups) product.fill(stages + g * P::kStageBytes, g, steps_of(g));
    end_copy_batch();
  }
  const uint32_t warp_tile = warp % P::kWarpsM * P::kT, warp_column = warp / P::kWarpsM * P::kOwnColumns;
  float acc[P::kT][P::kOwnColumns / 8][4] = {};
  for (uint32_t g = 0; g < n_groups; ++g) {
    wait_for_copy_batches<kStages - 2>();
    __syncthreads();  // this stage has arrived for all threads, and nobody reads the stage before it any more
    const uint32_t next = g + kStages - 1;
    if (next < n_groups) product.fill(stages + next % kStages * P::kStageBytes, next, steps_of(next));
    end_copy_batch();
    product.add(stages + g % kStages * P::kStageBytes, warp_tile, warp_column, steps_of(g), acc);
  }
#pragma unroll
  for (int t = 0; t < P::kT; ++t) {
    float sums[P::kOwnColumns / 2];
#pragma unroll
    for (int i = 0; i < P::kOwnColumns / 2; ++i) sums[i] = acc[t][i / 4][i % 4];
    put_all<P::kOwnColumns>(args, job, sums, first_column + warp_column,
                            (job.first_tile + warp_tile + t) * 16 + lane / 4, lane);
  }
}

}  // namespace zinc_rt::cuda
