// A float matrix times up to 4 rows of x, or times one row that the kernel normalizes first, with the same bits as
// float_linear.cuh. The GPU lanes of a half warp are the 16 lanes of the order of sums; a half warp computes a group of
// 256 values of k for four rows of W. The weights of the next group are loaded while those of this one are used. k is a
// multiple of 16.
#pragma once

#include "kernels/cuda/float_linear.cuh"

namespace zinc_rt::cuda {

// The 16 values of a group that one lane of the order of sums has, in the format of the matrix. Values behind the end
// of k are zeros, which change no sum.
template <Format F>
struct LaneBits {
  static constexpr bool kIsF32 = F == kF32;
  uint32_t words[kIsF32 ? 16 : 8];

  // Loads them from the group of n values that begins at value `first` of a row.
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
  // Returns the lane's i-th value of the group as a float.
  __device__ __forceinline__ float value(int i) const {
    if constexpr (kIsF32) return __uint_as_float(words[i]);
    return widen_half<F>(words[i / 2], i % 2);
  }
};

// The weights of the four rows of a half warp, for one group at a time.
template <Format F>
struct FourRows {
  LaneBits<F> w[4];
  const uint8_t* first_of_four;
  uint32_t bytes, n_after;  // bytes of a row; rows of the part behind the first of the four

  // Sets the rows: first_row of the job's part and the three after it.
  __device__ __forceinline__ void begin(const LinearArgs& args, const Job& job, uint32_t first_row) {
    const uint32_t first = min(first_row, job.part->rows - 1);
    bytes = args.k * (F == kF32 ? 4 : 2);
    first_of_four = job.w + static_cast<uint64_t>(first) * bytes;
    n_after = job.part->rows - 1 - first;
  }
  // Loads the lane's weights of group g; does nothing if there is no such group.
  __device__ __forceinline__ void load(uint32_t k, uint32_t g, uint32_t lane) {
    const uint32_t first = g * 256;
    if (first >= k) return;
    if (k - first >= 256)
      load_group(first, 256, lane);
    else
      load_group(first, k - first, lane);
  }

 private:
  // Rows behind the part's last row are replaced by that row.
  __device__ __forceinline__ void load_group(uint32_t first, uint32_t n, uint32_t lane) {
#pragma unroll
    for (uint32_t j = 0; j < 4; ++j)
      w[j].load(first_of_four + static_cast<uint64_t>(min(j, n_after)) * bytes, first, n, lane);
  }
};

// Begins a kernel: waits for the inputs and returns the workgroup's job. It also loads the first weights of the half
// warp's four rows (which begin at row `quad` of the block) for group `group`. In a dense product that happens before
// the wait, because weights never change and their addresses do not depend on the inputs.
template <Format F>
__device__ __forceinline__ Job start(const LinearArgs& args, FourRows<F>& rows, uint32_t first_column, uint32_t quad,
                                     uint32_t group, uint32_t lane) {
  const bool is_dense = args.choices == 0;
  const auto ask = [&](const Job& job) {
    rows.begin(args, job, job.first_tile * kFloatRows + quad);
    rows.load(args.k, group, lane);
  };
  Job job;
  if (is_dense) {
    job = job_of(args, blockIdx.x, blockIdx.z, 0);
    ask(job);
  }
  let_next_start();
  wait_for_inputs();
  const uint32_t n_rows = rows_of_x(args);
  if (is_dense) {
    job.n_columns = n_rows;
  } else {
    job = job_of(args, blockIdx.x, blockIdx.z, n_rows);
    if (first_column < job.n_columns) ask(job);
  }
  return job;
}

// The kernel for up to kLeastColumns rows of x per tile, which are read directly from global memory. Grid: (blocks of
// kFloatRows rows of all parts (matrices), tiles of rows of x, items of experts). An item is rows of x that chose the
// same expert. A workgroup computes eight groups at a time.
template <Format F>
__device__ __forceinline__ void float_linear_4(const LinearArgs& args) {
  constexpr uint32_t kRows = kFloatRows, kColumns = kLeastColumns, kGroupsAtOnce = 8,
                     kMostGroups = 64;  // groups whose sums v are in shared memory before they are added up
  __shared__ float shared[kMostGroups * kColumns * kRows];  // index: v[group][column][row]
  const uint32_t half = threadIdx.x / 16, lane = threadIdx.x % 16;
  const uint32_t k = args.k, n_groups = (k + 255) / 256, quad = half % 2 * 4, first_group = half / 2;
  const uint32_t first_column = blockIdx.y * kColumns;
  FourRows<F> rows;
  const Job job = start<F>(args, rows, first_column, quad, first_group, lane);
  if (first_column >= job.n_columns) return;
  const uint32_t first_row = job.first_tile * kRows, n_columns = min(job.n_columns - first_column, kColumns);
  float acc = 0.0f;  // the sum of row threadIdx.x % kRows, column threadIdx.x / kRows
  for (uint32_t begin = 0; begin < n_groups; begin += kMostGroups) {
    const uint32_t end = min(n_groups, begin + kMostGroups);
    for (uint32_t g = begin + first_group; g < end; g += kGroupsAtOnce) {
#pragma unroll 1
      for (uint32_t c = 0; c < n_columns; ++c) {
        const float* x = static_cast<const float*>(args.x) +
                         static_cast<uint64_t>(x_row(args, job, first_column + c)) * k + g * 256 + lane;
        float values[16], v[4] = {};
        if (k - g * 256 >= 256) {
#pragma unroll
          for (int i = 0; i < 16; ++i) values[i] = x[i * 16];
        } else {
#pragma unroll
          for (int i = 0; i < 16; ++i) values[i] = g * 256 + i * 16 < k ? x[i * 16] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < 16; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j) v[j] = __fmaf_rn(rows.w[j].value(i), values[i], v[j]);
        const float sum = fold_values(v, lane, 0xFFFFFFFFu);
        if (lane % 4 == 0) shared[((g - begin) * kColumns + c) * kRows + quad + lane / 4] = sum;
      }
      rows.load(k, g + kGroupsAtOnce, lane);
    }
    __syncthreads();
    if (threadIdx.x < kRows * kColumns)
      for (uint32_t g = 0; g < end - begin; ++g) acc = acc + shared[g * kRows * kColumns + threadIdx.x];
    __syncthreads();
  }
  const uint32_t m = first_row + threadIdx.x % kRows, column = threadIdx.x / kRows;
  if (column < n_columns && m < job.part->rows) put(args, job, first_column + column, m, acc);
}

// The kernel for one row of x that each workgroup normalizes itself, in the order of kernels/cpu/rms_norm.cpp. A lane
// needs the same values of a group for its sum of squares and for its product. The two half warps of a warp compute the
// same group for different rows of W. Each workgroup writes every gridDim.x-th group of the normalized row for other
// launches. Grid: blocks of kFloatRows rows of W.
template <Format F>
__device__ __forceinline__ void norm_linear_4(const NormedArgs& args) {
  constexpr uint32_t kRows = kFloatRows, kGroupsAtOnce = 8;
  __shared__ __align__(16) float own[kGroupsAtOnce][256];
  __shared__ float squares[kMostNormed / 256], v[kMostNormed / 256][kRows];
  const LinearArgs& product = args.linear;
  const uint32_t half = threadIdx.x / 16, lane = threadIdx.x % 16;
  const uint32_t k = product.k, n_groups = (k + 255) / 256, quad = half % 2 * 4, first_group = half / 2;
  const auto* x = static_cast<const float*>(product.x);
  const Job job = job_of(product, blockIdx.x, all_rows(1));
  FourRows<F> rows;
  rows.begin(product, job, job.first_tile * kRows + quad);
  rows.load(k, first_group, lane);
  LaneOfGroup scale, values;
  const auto load = [&](const float* from, uint32_t g) {
    return load_lane_of_group(from + g * 256, min(k - g * 256, 256u));
  };
  if (first_group < n_groups) scale = load(product.norm_w, first_group);
  let_next_start();
  wait_for_inputs();
  // Groups are visited from the last to the first, because the first one is used first afterwards, and is then still in
  // registers.
  for (uint32_t i = (n_groups + kGroupsAtOnce - 1 - first_group) / kGroupsAtOnce; i-- > 0;) {
    const uint32_t g = first_group + i * kGroupsAtOnce;
    values = load(x, g);
    const float sum = sum_of_squares(values);
    if (quad == 0 && lane == 0) squares[g] = sum;
  }
  __syncthreads();
  float sum = 0.0f;
  for (uint32_t g = 0; g < n_groups; ++g) sum = sum + squares[g];
  const float factor = exact::rsqrt(__fmaf_rn(sum, product.inverse_k, product.norm_eps));
  for (uint32_t g = first_group; g < n_groups; g += kGroupsAtOnce) {
    if (g != first_group) values = load(x, g), scale = load(product.norm_w, g), rows.load(k, g, lane);
    float dot[4] = {};
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      values.v[i] = i * 16 < values.n ? values.v[i] * factor * scale.v[i] : 0.0f;
#pragma unroll
      for (int j = 0; j < 4; ++j) dot[j] = __fmaf_rn(rows.w[j].value(i), values.v[i], dot[j]);
    }
    const float own_dot = fold_values(dot, lane, 0xFFFFFFFFu);
    if (lane % 4 == 0) v[g][quad + lane / 4] = own_dot;
    if (g % gridDim.x != blockIdx.x) continue;
    float* group = own[first_group];
#pragma unroll
    for (int i = 0; i < 16; ++i)
      if (quad == 0) group[i * 16 + lane] = values.v[i];
    __syncwarp();
    const uint32_t at = g * 256 + first_of_eight();
    const Eight eight = load_eight(group, first_of_eight(), 256);
    if (args.q8a256 != nullptr) quantize_eight<kQ8A256>(eight, q8_rows(args.q8a256, 1, k), 0, k, at);
    if (args.q16a256 != nullptr) quantize_eight<kQ16A256>(eight, q16_rows(args.q16a256, 1, k), 0, k, at);
    if (args.q8a32 != nullptr) quantize_eight<kQ8A32>(eight, q8_rows(args.q8a32, 1, k), 0, k, at);
    if (args.floats != nullptr)
      for (uint32_t i = threadIdx.x % 32; i < values.n; i += 32) args.floats[g * 256 + i] = group[i];
    __syncwarp();
  }
  __syncthreads();
  if (threadIdx.x >= kRows) return;
  float acc = 0.0f;
  for (uint32_t g = 0; g < n_groups; ++g) acc = acc + v[g][threadIdx.x];
  if (const uint32_t m = job.first_tile * kRows + threadIdx.x; m < job.part->rows) put(product, job, 0, m, acc);
}

}  // namespace zinc_rt::cuda
