// The product of linear.cuh for many rows of x, at the same bits. A workgroup has 32 kWarpsM rows of W and 128 of x.
// Groups of 256 of both lie in shared memory, those of the next stages on their way while one is used; a warp has two
// tiles of W and kN column tiles of x and adds up their groups by itself, in order. W has whole tiles only.
#pragma once

#include "kernels/sm_90/linear_job.cuh"

namespace zinc_rt::cuda {

// Four numbers below 128, each less `by`, as signed bytes.
__device__ __forceinline__ uint32_t less_in_bytes(uint32_t bytes, uint32_t by) {
  return ((bytes | 0x80808080u) - by * 0x01010101u) ^ 0x80808080u;
}

template <Format F, int kWarpsM>
struct TileProduct {
  using T = Traits<F>;
  // What blocks of 32 have to be taken off their codes is taken off at once, blocks of 256 in the sums.
  static constexpr bool kIsBlock32 = T::kBlock == 32, kLessens = kIsBlock32 && T::kOffset != 0;
  static constexpr bool kSigned = T::kP8 != 0 || T::kTable != 0 || kLessens;
  static constexpr int kTiles = 2 * kWarpsM, kN = 16 / (kWarps / kWarpsM), kColumnsOfWarp = kTileColumns / kWarps;
  static constexpr uint32_t kGroupBytes = 256 / T::kBlock * T::kBytes, kTileBytes = 16 * kGroupBytes;
  static constexpr uint32_t kX = kTiles * kTileBytes, kSums = kX + kTileColumns * kTileXPitch,
                            kScales = kSums + kTileColumns * 32,
                            kStageBytes = tile_stage_bytes(kTiles, kGroupBytes, kIsBlock32);
  static constexpr int kStages = tile_stages(kStageBytes);

  const LinearArgs& args;
  const Job& job;
  Q8Rows x;
  uint32_t warp, lane, last_tile;
  uint32_t row;  // of x, that lane % 16 copies for its warp

  // Group g to a stage; n_steps: 8, or fewer in the last one.
  __device__ __forceinline__ void fill(uint8_t* stage, uint32_t g, uint32_t n_steps) const {
    const uint64_t row_bytes = row_bytes_of<F>(args.k), group_at = 16 * row_bytes_of<F>(g * 256);
    const uint32_t vectors = n_steps * 32 / T::kBlock * T::kBytes;  // of a tile
    for (uint32_t tile = warp; tile < kTiles; tile += kWarps) {
      const uint32_t from_tile = min(job.first_tile + tile, last_tile);
      const uint8_t* from = job.w + from_tile * 16 * row_bytes + group_at;
      for (uint32_t i = lane; i < vectors; i += 32) copy_16(stage + tile * kTileBytes + 16 * i, from + 16 * i);
    }
#pragma unroll
    for (int j = 0; j < kColumnsOfWarp / 2; ++j) {
      const uint32_t column = warp * kColumnsOfWarp + 2 * j + lane / 16, vector = lane % 16;
      const uint32_t from = __shfl_sync(0xFFFFFFFFu, row, 2 * j + lane / 16);
      if (vector < 2 * n_steps)
        copy_16(stage + kX + column * kTileXPitch + 16 * vector,
                x.qs + static_cast<uint64_t>(from) * args.k + g * 256 + 16 * vector);
    }
    const uint32_t column = warp * kColumnsOfWarp + lane / 2, half = lane % 2;
    const uint64_t value = static_cast<uint64_t>(__shfl_sync(0xFFFFFFFFu, row, lane / 2)) * args.k + g * 256;
    if constexpr (kIsBlock32) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32_t step = 4 * half + i, at = (column * 8 + step) * 4;
        if (step >= n_steps) break;
        copy_4(stage + kSums + at, static_cast<const int32_t*>(x.sums) + value / 32 + step);
        copy_4(stage + kScales + at, x.d + value / 32 + step);
      }
    } else {
      copy_16(stage + kSums + column * 32 + 16 * half, static_cast<const int16_t*>(x.sums) + value / 16 + 8 * half);
      if (half == 0) copy_4(stage + kScales + column * 4, x.d + value / 256);
    }
  }

  // acc += the group of a stage, in the order of the contract; the warp's tiles begin at first_tile, its columns at
  // first_column of the workgroup's.
  __device__ __forceinline__ void add(const uint8_t* stage, uint32_t first_tile, uint32_t first_column,
                                      uint32_t n_steps, float (&acc)[2][kN][4]) const {
    if constexpr (kIsBlock32)
      add_blocks(stage, first_tile, first_column, n_steps, acc);
    else
      add_super(stage, first_tile, first_column, acc);
  }

 private:
  __device__ __forceinline__ uint2 operand_b(const uint8_t* stage, uint32_t first_column, int n, int s) const {
    return *reinterpret_cast<const uint2*>(stage + kX + (first_column + n * 8 + lane / 4) * kTileXPitch + s * 32 +
                                           lane % 4 * 8);
  }

  __device__ __forceinline__ void add_blocks(const uint8_t* stage, uint32_t first_tile, uint32_t first_column,
                                             uint32_t n_steps, float (&acc)[2][kN][4]) const {
    float v[2][kN][4] = {};
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      if (s >= n_steps) break;
      uint32_t a[2][4], scale[2][2];
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        const uint8_t* group = stage + (first_tile + t) * kTileBytes;
        operand<F>(load_step<F, FromShared>(group, n_steps, s, lane), a[t]);
        if constexpr (kLessens) {
#pragma unroll
          for (uint32_t& codes : a[t]) codes = less_in_bytes(codes, T::kOffset);
        }
#pragma unroll
        for (int r = 0; r < 2; ++r)
          scale[t][r] = load_scale<F, FromShared>(group + planes_bytes<F>(n_steps), s, lane / 4 + 8 * r);
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
        for (int t = 0; t < 2; ++t) {
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
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int n = 0; n < kN; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) acc[t][n][i] = acc[t][n][i] + v[t][n][i];
  }

  __device__ __forceinline__ void add_super(const uint8_t* stage, uint32_t first_tile, uint32_t first_column,
                                            float (&acc)[2][kN][4]) const {
    KScales scales[2][2];
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        uint32_t words[4], word;
        load_scales<F, FromShared>(stage + (first_tile + t) * kTileBytes + planes_bytes<F>(8), lane / 4 + 8 * r, words,
                                   word);
        scales[t][r] = k_scales<F>(words, word);
      }
    int isum[2][kN][4] = {};
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      uint32_t a[2][4];
#pragma unroll
      for (int t = 0; t < 2; ++t)
        operand<F>(load_step<F, FromShared>(stage + (first_tile + t) * kTileBytes, 8, s, lane), a[t]);
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        const uint2 b = operand_b(stage, first_column, n, s);
#pragma unroll
        for (int t = 0; t < 2; ++t) add_step<F, kSigned>(isum[t][n], a[t], b, scales[t], s, {});
      }
    }
    // What is taken off codes, and minimums, meet x in its sums of 16 values alone: a product with 16 values of k.
    constexpr bool kSums16 = T::kOffset != 0 || T::kMin != 0;
    uint32_t m[2][2] = {};
    if constexpr (kSums16) {
#pragma unroll
      for (int t = 0; t < 2; ++t)
#pragma unroll
        for (int r = 0; r < 2; ++r) m[t][r] = sums_operand(scales[t][r]);
    }
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      uint32_t low = 0, high = 0;  // of four sums: 64 high + low
      if constexpr (kSums16) {
        const uint2 sums =
            *reinterpret_cast<const uint2*>(stage + kSums + (first_column + n * 8 + lane / 4) * 32 + lane % 4 * 8);
        low = __byte_perm(sums.x & 0x003F003Fu, sums.y & 0x003F003Fu, 0x6420);
        high = __byte_perm(sums.x >> 6, sums.y >> 6, 0x6420);
      }
      float dx[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        dx[i] = *reinterpret_cast<const float*>(stage + kScales + (first_column + n * 8 + lane % 4 * 2 + i) * 4);
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        int c[4] = {};
        if constexpr (kSums16) {
          mma16<true>(c, m[t][0], m[t][1], high);
#pragma unroll
          for (int i = 0; i < 4; ++i) c[i] *= 64;
          mma16<true>(c, m[t][0], m[t][1], low);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const KScales& s = scales[t][i / 2];
          const float sum = static_cast<float>(T::kOffset != 0 ? isum[t][n][i] - T::kOffset * c[i] : isum[t][n][i]);
          const float value = T::kMin != 0 ? __fmaf_rn(sum, s.d, static_cast<float>(c[i]) * -s.dmin) : sum * s.d;
          acc[t][n][i] = __fmaf_rn(value, dx[i % 2], acc[t][n][i]);
        }
      }
    }
  }

  // The lane's four bytes of A: what the sums of 16 values from lane % 4 * 4 on are multiplied by.
  __device__ __forceinline__ uint32_t sums_operand(const KScales& s) const {
    const uint32_t part = lane % 4;
    if constexpr (T::kMin != 0 && T::kSub == 32)  // a minimum is two sums'
      return __byte_perm(part < 2 ? s.m[0] : s.m[1], 0, part % 2 == 0 ? 0x1100 : 0x3322);
    const uint32_t(&words)[4] = T::kMin != 0 ? s.m : s.sc;
    const uint32_t word = part < 2 ? (part == 0 ? words[0] : words[1]) : (part == 2 ? words[2] : words[3]);
    // The scales of Q3_K are stored with 32 added.
    return F == kQ3_K ? less_in_bytes(word, 32) : word;
  }
};

// Grid: blocks of 32 kWarpsM rows of all parts, blocks of 128 columns, items of experts.
template <Format F, int kWarpsM>
__device__ __forceinline__ void linear_tile(const LinearArgs& args) {
  using P = TileProduct<F, kWarpsM>;
  ZRT_DYNAMIC_SHARED(float, shared);
  uint8_t* stages = reinterpret_cast<uint8_t*>(shared);
  wait_for_inputs();
  let_next_start();
  const uint32_t n_rows = rows_of_x(args), first_column = blockIdx.y * kTileColumns;
  const Job job = job_of<P::kTiles>(args, n_rows);
  if (first_column >= job.n_columns) return;
  const uint32_t k = args.k, n_groups = (k + 255) / 256, last_steps = (k - (n_groups - 1) * 256) / 32;
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const auto row_at = [&](uint32_t column) {  // columns past the last read its row again
    return x_row(args, job, column < job.n_columns ? column : job.n_columns - 1);
  };
  const P product{
      args,
      job,
      q8_rows(const_cast<void*>(args.x), static_cast<uint64_t>(n_rows) * (job.is_expert ? args.x_rows : 1), k),
      warp,
      lane,
      job.part->rows / 16 - 1,
      row_at(first_column + warp * P::kColumnsOfWarp + lane % 16)};
  const auto steps_of = [&](uint32_t g) { return g + 1 < n_groups ? 8 : last_steps; };
  constexpr int kStages = P::kStages;
#pragma unroll
  for (int g = 0; g < kStages - 1; ++g) {
    if (g < n_groups) product.fill(stages + g * P::kStageBytes, g, steps_of(g));
    end_copy_batch();
  }
  const uint32_t warp_tile = warp % kWarpsM * 2, warp_column = warp / kWarpsM * P::kN * 8;
  float acc[2][P::kN][4] = {};
  for (uint32_t g = 0; g < n_groups; ++g) {
    wait_for_copy_batches<kStages - 2>();
    __syncthreads();  // the stage is there for all, and nobody reads the one before it any more
    const uint32_t next = g + kStages - 1;
    if (next < n_groups) product.fill(stages + next % kStages * P::kStageBytes, next, steps_of(next));
    end_copy_batch();
    product.add(stages + g % kStages * P::kStageBytes, warp_tile, warp_column, steps_of(g), acc);
  }
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int n = 0; n < P::kN; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32_t m = (job.first_tile + warp_tile + t) * 16 + lane / 4 + i / 2 * 8;
        const uint32_t column = first_column + warp_column + n * 8 + lane % 4 * 2 + i % 2;
        if (m < job.part->rows && column < job.n_columns) put(args, job, column, m, acc[t][n][i]);
      }
}

}  // namespace zinc_rt::cuda
