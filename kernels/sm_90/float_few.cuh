// Rows of a float matrix times a row of x, or up to 16, at the bits of float_linear.cuh: a half warp is the 16 lanes of
// a group of 256 of four rows of W, whose weights come while those of the group before are used. k is a multiple of 16.
#pragma once

#include "kernels/sm_90/linear_job.cuh"

namespace zinc_rt::cuda {

// A lane's 16 values of a group, as they lie in memory; those past the end of k are zeros, which change no sum.
template <Format F>
struct LaneBits {
  static constexpr bool kIsF32 = F == kF32;
  uint32_t words[kIsF32 ? 16 : 8];

  // Of the group of n values that begins at `first` of a row.
  __device__ __forceinline__ void load(const uint8_t* row, uint32_t first, uint32_t n, uint32_t lane) {
    if constexpr (kIsF32) {
      const auto* at = reinterpret_cast<const uint32_t*>(row) + first + lane;
#pragma unroll
      for (int i = 0; i < 16; ++i) words[i] = i * 16 < n ? __ldg(at + i * 16) : 0;
    } else {
      const auto* at = reinterpret_cast<const uint16_t*>(row) + first;
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        const uint4 v = load_lane_part(at, part, n, lane);
        words[4 * part] = v.x, words[4 * part + 1] = v.y, words[4 * part + 2] = v.z, words[4 * part + 3] = v.w;
      }
    }
  }
  __device__ __forceinline__ float value(int i) const {
    if constexpr (kIsF32) return __uint_as_float(words[i]);
    return widen_half<F>(words[i / 2], i % 2);
  }
};

// The sums of the 16 lanes of kValues values at once, in the order of kernels/common/fold.h; afterwards a lane has that
// of value lane / (16 / kValues).
template <int kValues>
__device__ __forceinline__ float fold_values(float (&v)[kValues], uint32_t lane, uint32_t mask) {
  int width = 8;
#pragma unroll
  for (int n = kValues / 2; n > 0; n /= 2, width /= 2) {
    const bool upper = (lane & width) != 0;
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const float mine = upper ? v[j + n] : v[j], other = upper ? v[j] : v[j + n];
      v[j] = mine + __shfl_xor_sync(mask, other, width);
    }
  }
#pragma unroll
  for (; width > 0; width /= 2) v[0] = v[0] + __shfl_xor_sync(mask, v[0], width);
  return v[0];
}

// What both kernels have: the weights of a half warp's four rows.
template <Format F>
struct FourRows {
  LaneBits<F> w[4];

  __device__ __forceinline__ static const uint8_t* row(const LinearArgs& args, const Job& job, uint32_t m) {
    const uint32_t last = job.part->rows - 1;
    return job.w + static_cast<uint64_t>(m < last ? m : last) * args.k * (F == kF32 ? 4 : 2);
  }
  __device__ __forceinline__ void load_row(int j, const LinearArgs& args, const Job& job, uint32_t first_row,
                                           uint32_t g, uint32_t lane) {
    const uint32_t first = g * 256, n = args.k - first < 256 ? args.k - first : 256;
    w[j].load(row(args, job, first_row + j), first, n, lane);
  }
  __device__ __forceinline__ void load(const LinearArgs& args, const Job& job, uint32_t first_row, uint32_t g,
                                       uint32_t lane) {
    if (g * 256 >= args.k) return;
#pragma unroll
    for (int j = 0; j < 4; ++j) load_row(j, args, job, first_row, g, lane);
  }
};

// One row of x. Grid: blocks of kFloatRows rows of all parts, 1, choices of experts. Eight groups at a time.
template <Format F>
__device__ __forceinline__ void float_linear_one(const LinearArgs& args) {
  constexpr uint32_t kRows = kFloatRows, kGroupsAtOnce = 8, kMostGroups = 64;  // between two sums over groups
  __shared__ float shared[kMostGroups * kRows];
  const uint32_t half = threadIdx.x / 16, lane = threadIdx.x % 16, mask = 0xFFFFu << (threadIdx.x & 16);
  const uint32_t n_groups = (args.k + 255) / 256, quad = half % 2 * 4, first_group = half / 2;
  const bool is_dense = args.choices == 0;
  Job job;
  FourRows<F> rows;
  // Weights never change, so the first ones are on their way before the inputs are there.
  if (is_dense) {
    job = job_of<1>(args, 0);
    rows.load(args, job, job.first_tile * kRows + quad, first_group, lane);
  }
  let_next_start();
  wait_for_inputs();
  const uint32_t n_rows = rows_of_x(args);
  if (is_dense) {
    job.n_columns = n_rows;
  } else {
    job = job_of<1>(args, n_rows);
  }
  if (job.n_columns == 0) return;
  const uint32_t first_row = job.first_tile * kRows;
  if (!is_dense) rows.load(args, job, first_row + quad, first_group, lane);
  const float* x = static_cast<const float*>(args.x) + static_cast<uint64_t>(x_row(args, job, 0)) * args.k + lane;
  float acc = 0.0f;  // of row threadIdx.x
  for (uint32_t begin = 0; begin < n_groups; begin += kMostGroups) {
    const uint32_t end = n_groups - begin < kMostGroups ? n_groups : begin + kMostGroups;
    for (uint32_t g = begin + first_group; g < end; g += kGroupsAtOnce) {
      const uint32_t n = args.k - g * 256 < 256 ? args.k - g * 256 : 256;
      float values[16], v[4] = {};
#pragma unroll
      for (int i = 0; i < 16; ++i) values[i] = i * 16 < n ? x[g * 256 + i * 16] : 0.0f;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int i = 0; i < 16; ++i) v[j] = __fmaf_rn(rows.w[j].value(i), values[i], v[j]);
        if (g + kGroupsAtOnce < n_groups) rows.load_row(j, args, job, first_row + quad, g + kGroupsAtOnce, lane);
      }
      const float sum = fold_values(v, lane, mask);
      if (lane % 4 == 0) shared[(g - begin) * kRows + quad + lane / 4] = sum;
    }
    __syncthreads();
    if (threadIdx.x < kRows)
      for (uint32_t g = 0; g < end - begin; ++g) acc = acc + shared[g * kRows + threadIdx.x];
    __syncthreads();
  }
  if (threadIdx.x < kRows && first_row + threadIdx.x < job.part->rows) put(args, job, 0, first_row + threadIdx.x, acc);
}

// Up to kFewColumns rows of x, brought to shared memory eight rows and eight groups at a time, each lane's values one
// after another. Grid: blocks of kFewRows rows of all parts, tiles of columns, items of experts.
template <Format F>
__device__ __forceinline__ void float_linear_few(const LinearArgs& args) {
  constexpr uint32_t kGroupsAtOnce = kFewGroups, kLane = kFewLanePitch, kGroup = 16 * kLane;
  constexpr uint32_t kColumn = kGroupsAtOnce * kGroup;
  ZRT_DYNAMIC_SHARED(float, shared);            // x[column][group][lane][16 values of kLane]
  float* sums = shared + kFewAtOnce * kColumn;  // v[group][column][row]
  const uint32_t half = threadIdx.x / 16, lane = threadIdx.x % 16, mask = 0xFFFFu << (threadIdx.x & 16);
  const uint32_t k = args.k, n_groups = (k + 255) / 256, quad = half % 4 * 4, group = half / 4;
  const bool is_dense = args.choices == 0;
  Job job;
  FourRows<F> rows;
  if (is_dense) {  // as above
    job = job_of<1>(args, 0);
    rows.load(args, job, job.first_tile * kFewRows + quad, group, lane);
  }
  let_next_start();
  wait_for_inputs();
  const uint32_t n_rows = rows_of_x(args), first_column = blockIdx.y * kFewColumns;
  if (is_dense) {
    job.n_columns = n_rows;
  } else {
    job = job_of<1>(args, n_rows);
  }
  if (first_column >= job.n_columns) return;
  const uint32_t first_row = job.first_tile * kFewRows;
  const uint32_t n_columns = min(job.n_columns - first_column, kFewColumns);
  if (!is_dense) rows.load(args, job, first_row + quad, group, lane);
  float acc = 0.0f;  // of row threadIdx.x % kFewRows, column threadIdx.x / kFewRows
  for (uint32_t begin = 0; begin < n_groups; begin += kGroupsAtOnce) {
    const uint32_t g = begin + group;
    float w[4][16];
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int i = 0; i < 16; ++i) w[j][i] = rows.w[j].value(i);
    // Those of F32 are too many registers for two groups.
    if constexpr (F != kF32) rows.load(args, job, first_row + quad, g + kGroupsAtOnce, lane);
    for (uint32_t at = 0; at < n_columns; at += kFewAtOnce) {
      const uint32_t n_here = min(n_columns - at, kFewAtOnce);
      __syncthreads();
      for (uint32_t i = threadIdx.x; i < n_here * kGroupsAtOnce * 64; i += blockDim.x) {
        const uint32_t column = i / (kGroupsAtOnce * 64), first = begin * 256 + i % (kGroupsAtOnce * 64) * 4;
        const uint64_t row = x_row(args, job, first_column + at + column);
        const float4 v = first < k
                             ? *reinterpret_cast<const float4*>(static_cast<const float*>(args.x) + row * k + first)
                             : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        float* to = shared + i / 64 * kGroup + first % 16 * kLane + first % 256 / 16;
        to[0] = v.x, to[kLane] = v.y, to[2 * kLane] = v.z, to[3 * kLane] = v.w;
      }
      __syncthreads();
      if (g >= n_groups) continue;
      for (uint32_t c = 0; c < n_here; c += 2) {  // two columns at once; what is past the last goes nowhere
        const float* x = shared + c * kColumn + group * kGroup + lane * kLane;
        float v[8] = {};
#pragma unroll
        for (int i = 0; i < 16; i += 4) {
          const float4 x0 = *reinterpret_cast<const float4*>(x + i),
                       x1 = *reinterpret_cast<const float4*>(x + kColumn + i);
          const float values[2][4] = {{x0.x, x0.y, x0.z, x0.w}, {x1.x, x1.y, x1.z, x1.w}};
#pragma unroll
          for (int s = 0; s < 4; ++s)
#pragma unroll
            for (int j = 0; j < 8; ++j) v[j] = __fmaf_rn(w[j % 4][i + s], values[j / 4][s], v[j]);
        }
        const float sum = fold_values(v, lane, mask);
        if (lane % 2 == 0) sums[(group * kFewColumns + at + c + lane / 8) * kFewRows + quad + lane / 2 % 4] = sum;
      }
    }
    if constexpr (F == kF32) rows.load(args, job, first_row + quad, g + kGroupsAtOnce, lane);
    __syncthreads();
    const uint32_t n_here = min(n_groups - begin, kGroupsAtOnce);
    if (threadIdx.x < kFewRows * kFewColumns)
      for (uint32_t i = 0; i < n_here; ++i) acc = acc + sums[i * kFewRows * kFewColumns + threadIdx.x];
  }
  const uint32_t m = first_row + threadIdx.x % kFewRows, column = threadIdx.x / kFewRows;
  if (column < n_columns && m < job.part->rows) put(args, job, first_column + column, m, acc);
}

}  // namespace zinc_rt::cuda
