// Rows of a float matrix times many rows of x, at the bits of float_linear.cuh. A workgroup has kSide rows of W and as
// many of x, 64 or 32. Its threads are sets: each has all of these products, a thread 8 x 8 of them, for some of the 16
// lanes of a group of 256: one after another, since a lane is a sum of its own. Of 64 there are 4 sets, and set s has
// lanes s, s + 4, s + 12, s + 8, whose sums it folds by itself; of 32 there are 16 sets of a lane. The sets' sums meet
// in shared memory, where a thread adds them up for a part of the products, folded as in kernels/common/fold.h, group
// by group in order. k is a multiple of 16.
#pragma once

#include "kernels/common/fold.h"
#include "kernels/sm_90/linear_job.cuh"

namespace zinc_rt::cuda {

template <Format F, int kSide>
struct FloatTile {
  static constexpr int kThreads = kFloatTileThreads, kOfSet = kSide / 8 * (kSide / 8), kSets = kThreads / kOfSet;
  static constexpr int kLanesOfSet = 16 / kSets;
  // A stage has 8 lanes of a group, or all 16, each kStep values a row, W and x.
  static constexpr int kLanes = kSide == 64 ? 8 : 16, kStages = 16 / kLanes;
  static constexpr int kLane = float_tile_lane(kSide), kOperand = kLanes * kLane, kStage = 2 * kOperand;
  static constexpr int kUnits = 4;  // of W and of x in a stage that a thread brings
  static constexpr bool kIsF32 = F == kF32;

  const LinearArgs& args;
  const uint8_t* w;
  uint32_t last_row;       // of W, from the first of the workgroup
  const uint32_t* x_rows;  // shared: of the columns
  float *stages, *sums;    // shared: two stages; sums[set][vector of 4 of 64][thread of the set]

  // What a thread has on its way from global memory to a stage: two lots of 8 numbers.
  struct Bits {
    uint32_t w[kIsF32 ? 8 : 4];
    float4 x[2];
  };
  // The row of a unit, and the first of its 8 lanes.
  __device__ __forceinline__ static uint32_t unit_row(int unit) {
    return (threadIdx.x + unit * kThreads) / (16 * (kLanes / 8));
  }
  __device__ __forceinline__ static uint32_t unit_lane() { return threadIdx.x / 16 % (kLanes / 8) * 8; }
  // 16 bits: the lane and the part of a group that a unit has of W.
  __device__ __forceinline__ static uint32_t half_lane() { return threadIdx.x % kLanes; }
  __device__ __forceinline__ static uint32_t half_part() { return threadIdx.x / kLanes % 2; }

  __device__ __forceinline__ void fetch(Bits& bits, int unit, uint32_t stage) const {
    const uint32_t first = stage / kStages * 256, n = args.k - first < 256 ? args.k - first : 256;
    const uint32_t lanes = stage % kStages * 8, row = unit_row(unit), step = threadIdx.x % 16;
    const uint64_t w_row = static_cast<uint64_t>(min(row, last_row)) * args.k + first;
    const bool is_there = step * 16 < n;
    if constexpr (kIsF32) {
      uint4 v[2] = {};
      const auto* at = reinterpret_cast<const uint4*>(w + (w_row + step * 16 + lanes + unit_lane()) * 4);
      if (is_there) v[0] = __ldg(at), v[1] = __ldg(at + 1);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        bits.w[4 * i] = v[i].x, bits.w[4 * i + 1] = v[i].y, bits.w[4 * i + 2] = v[i].z, bits.w[4 * i + 3] = v[i].w;
    } else {
      const uint4 v = load_lane_part(reinterpret_cast<const uint16_t*>(w) + w_row, half_part(), n, lanes + half_lane());
      bits.w[0] = v.x, bits.w[1] = v.y, bits.w[2] = v.z, bits.w[3] = v.w;
    }
    const auto* x = reinterpret_cast<const float4*>(static_cast<const float*>(args.x) +
                                                    static_cast<uint64_t>(x_rows[row]) * args.k + first + step * 16 +
                                                    lanes + unit_lane());
    bits.x[0] = bits.x[1] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (is_there) bits.x[0] = x[0], bits.x[1] = x[1];
  }
  // To a stage, where 16 values of a lane of a row lie together.
  __device__ __forceinline__ void store(const Bits& bits, int unit, uint32_t stage) const {
    float* to_w = stages + stage % 2 * kStage;
    float* to_x = to_w + kOperand;
    const uint32_t row = unit_row(unit), step = threadIdx.x % 16;
    const auto spread = [&](float* to, const float(&v)[8]) {
#pragma unroll
      for (int i = 0; i < 8; ++i) to[(unit_lane() + i) * kLane + row * kFloatTilePitch + step] = v[i];
    };
    if constexpr (kIsF32) {
      float v[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) v[i] = __uint_as_float(bits.w[i]);
      spread(to_w, v);
    } else {
      auto* to = reinterpret_cast<float4*>(to_w + half_lane() * kLane + row * kFloatTilePitch + half_part() * 8);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        to[i] = make_float4(widen_half<F>(bits.w[2 * i], 0), widen_half<F>(bits.w[2 * i], 1),
                            widen_half<F>(bits.w[2 * i + 1], 0), widen_half<F>(bits.w[2 * i + 1], 1));
    }
    const float v[8] = {bits.x[0].x, bits.x[0].y, bits.x[0].z, bits.x[0].w,
                        bits.x[1].x, bits.x[1].y, bits.x[1].z, bits.x[1].w};
    spread(to_x, v);
  }

  // A thread's place among those of its set: its rows of W are every kSide / 8th from `row` on, those of x from
  // `column`. Of two neighbours one has the other's row, of two next but one the other's column, and a quarter of a
  // warp reads four rows: so a load of 16 bytes goes through shared memory in two passes.
  struct Place {
    uint32_t set, thread, row, column;
  };
  __device__ __forceinline__ static Place place() {
    const uint32_t u = threadIdx.x % kOfSet;
    return {threadIdx.x / kOfSet, u, (u >> 1 & 3) | (u >> 4 & 1) << 2, (u & 1) | (u >> 3 & 1) << 1 | (u >> 5 & 1) << 2};
  }

  // The sums of a lane of the stage, v[row * 8 + column], in ascending order of k.
  __device__ __forceinline__ void multiply(float (&v)[64], uint32_t stage, uint32_t lane) const {
    const Place at = place();
    const float* from_w = stages + stage % 2 * kStage + lane * kLane + at.row * kFloatTilePitch;
    const float* from_x = stages + stage % 2 * kStage + kOperand + lane * kLane + at.column * kFloatTilePitch;
    four_steps<true>(v, from_w, from_x);
#pragma unroll 1
    for (int i = 4; i < 16; i += 4) four_steps<false>(v, from_w + i, from_x + i);
  }
  template <bool kIsFirst>
  __device__ __forceinline__ static void four_steps(float (&v)[64], const float* from_w, const float* from_x) {
    constexpr int kNext = kSide / 8 * kFloatTilePitch;
    float4 w[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) w[j] = *reinterpret_cast<const float4*>(from_w + j * kNext);
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const float4 x = *reinterpret_cast<const float4*>(from_x + c * kNext);
#pragma unroll
      for (int j = 0; j < 8; ++j) v[j * 8 + c] = __fmaf_rn(w[j].x, x.x, kIsFirst ? 0.0f : v[j * 8 + c]);
#pragma unroll
      for (int j = 0; j < 8; ++j) v[j * 8 + c] = __fmaf_rn(w[j].y, x.y, v[j * 8 + c]);
#pragma unroll
      for (int j = 0; j < 8; ++j) v[j * 8 + c] = __fmaf_rn(w[j].z, x.z, v[j * 8 + c]);
#pragma unroll
      for (int j = 0; j < 8; ++j) v[j * 8 + c] = __fmaf_rn(w[j].w, x.w, v[j * 8 + c]);
    }
  }

  // Where a thread of a set leaves its i-th four sums.
  __device__ __forceinline__ float4* sums_at(uint32_t set, uint32_t i, uint32_t thread) const {
    return reinterpret_cast<float4*>(sums) + (set * 16 + i) * kOfSet + thread;
  }
  __device__ __forceinline__ void leave(const float (&v)[64]) const {
    const Place at = place();
#pragma unroll
    for (int i = 0; i < 16; ++i)
      *sums_at(at.set, i, at.thread) = make_float4(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]);
  }
  __device__ __forceinline__ void add_left(float (&v)[64]) const {
    const Place at = place();
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const float4 left = *sums_at(at.set, i, at.thread);
      v[4 * i] = left.x + v[4 * i], v[4 * i + 1] = left.y + v[4 * i + 1];
      v[4 * i + 2] = left.z + v[4 * i + 2], v[4 * i + 3] = left.w + v[4 * i + 3];
    }
  }
  // acc += the group whose sums the sets have left: fours set * kLanesOfSet + i of the place's thread.
  __device__ __forceinline__ void add_group(float (&acc)[4 * kLanesOfSet]) const {
    const Place at = place();
#pragma unroll
    for (int i = 0; i < kLanesOfSet; ++i) {
      float lanes[4][kSets];
#pragma unroll
      for (int s = 0; s < kSets; ++s) {
        const float4 v = *sums_at(s, at.set * kLanesOfSet + i, at.thread);
        lanes[0][s] = v.x, lanes[1][s] = v.y, lanes[2][s] = v.z, lanes[3][s] = v.w;
      }
#pragma unroll
      for (int e = 0; e < 4; ++e) acc[4 * i + e] = acc[4 * i + e] + fold_sets(lanes[e]);
    }
  }
  __device__ __forceinline__ static float fold_sets(float (&lane)[kSets]) {
#pragma unroll
    for (int level = 2; level <= kSets; level *= 2)
#pragma unroll
      for (int l = 0; l < kSets / 2; ++l)
        if (l < kSets / level) lane[l] = lane[l] + lane[l + kSets / level];
    return lane[0];
  }

  // v of a lane, while units of the next stage come.
  template <int kFirst, int kCount>
  __device__ __forceinline__ void multiply_and_fill(float (&v)[64], uint32_t stage, uint32_t lane,
                                                    uint32_t n_stages) const {
    Bits bits[kCount];
    if (stage + 1 < n_stages) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) fetch(bits[i], kFirst + i, stage + 1);
    }
    multiply(v, stage, lane);
    if (stage + 1 < n_stages) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) store(bits[i], kFirst + i, stage + 1);
    }
  }

  __device__ __forceinline__ void run(float (&acc)[4 * kLanesOfSet]) const {
    const uint32_t n_stages = (args.k + 255) / 256 * kStages, set = place().set;
#pragma unroll 1
    for (int unit = 0; unit < kUnits; ++unit) {
      Bits bits;
      fetch(bits, unit, 0);
      store(bits, unit, 0);
    }
    __syncthreads();
    float v[64];
    for (uint32_t stage = 0; stage < n_stages; stage += kStages) {
      if (stage > 0) add_group(acc);
      if constexpr (kSide == 64) {
        float other[64];
        multiply_and_fill<0, 2>(v, stage, set, n_stages);
        multiply_and_fill<2, 2>(other, stage, set + 4, n_stages);
        __syncthreads();  // the next stage is there, and nobody reads sums any more
        leave(v);
        multiply_and_fill<0, 2>(v, stage + 1, set + 4, n_stages);
#pragma unroll
        for (int i = 0; i < 64; ++i) other[i] = other[i] + v[i];
        multiply_and_fill<2, 2>(v, stage + 1, set, n_stages);
        add_left(v);
#pragma unroll
        for (int i = 0; i < 64; ++i) v[i] = v[i] + other[i];
      } else {
        multiply_and_fill<0, 4>(v, stage, set, n_stages);
        __syncthreads();
      }
      leave(v);
      __syncthreads();
    }
    add_group(acc);
  }
};

// Grid: blocks of kSide rows of all parts, tiles of kSide columns, items of experts.
template <Format F, int kSide>
__device__ __forceinline__ void float_linear_tile(const LinearArgs& args) {
  using P = FloatTile<F, kSide>;
  ZRT_DYNAMIC_SHARED(float, shared);
  let_next_start();
  wait_for_inputs();
  const uint32_t first_column = blockIdx.y * kSide;
  const Job job = job_of(args, blockIdx.x, blockIdx.z, rows_of_x(args));
  if (first_column >= job.n_columns) return;
  const uint32_t first_row = job.first_tile * kSide, rows = job.part->rows;
  auto* x_rows = reinterpret_cast<uint32_t*>(shared + 2 * P::kStage + 64 * P::kThreads);
  if (threadIdx.x < kSide)  // columns past the last read its row again
    x_rows[threadIdx.x] = x_row(args, job, min(first_column + threadIdx.x, job.n_columns - 1));
  __syncthreads();
  const P product{args,
                  job.w + static_cast<uint64_t>(first_row) * args.k * (F == kF32 ? 4 : 2),
                  rows - 1 - first_row,
                  x_rows,
                  shared,
                  shared + 2 * P::kStage};
  float acc[4 * P::kLanesOfSet] = {};
  product.run(acc);
  const auto at = P::place();
#pragma unroll
  for (int i = 0; i < 4 * P::kLanesOfSet; ++i) {
    const uint32_t product_of = at.set * 4 * P::kLanesOfSet + i;
    const uint32_t m = first_row + at.row + product_of / 8 * (kSide / 8);
    const uint32_t column = first_column + at.column + product_of % 8 * (kSide / 8);
    if (m < rows && column < job.n_columns) put(args, job, column, m, acc[i]);
  }
}

}  // namespace zinc_rt::cuda
