// What the workgroups of a product share out among themselves: matrices side by side, experts, rows of x; and where
// results go.
#pragma once

#include "kernels/sm_90/weights.cuh"

namespace zinc_rt::cuda {

constexpr int kWarps = 8;  // of a workgroup of an integer product

// isum += one step of a tile of a 256-value format, each sub-block by its sub-scale. begin: what the sums of its first
// and last 16 values begin with; formats with sub-blocks of 32 begin with none.
template <Format F, bool kSigned>
__device__ __forceinline__ void add_step(int (&isum)[4], const uint32_t (&a)[4], uint2 b, const KScales (&scales)[2],
                                         int s, const int (&begin)[2][4]) {
  if constexpr (Traits<F>::kSub == 32) {
    int c[4] = {};
    mma32<kSigned>(c, a, b);
#pragma unroll
    for (int i = 0; i < 4; ++i) isum[i] += sub_scale<F>(scales[i / 2], s) * c[i];
  } else {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int c[4] = {begin[half][0], begin[half][1], begin[half][2], begin[half][3]};
      mma16<kSigned>(c, a[2 * half], a[2 * half + 1], half == 0 ? b.x : b.y);
#pragma unroll
      for (int i = 0; i < 4; ++i) isum[i] += sub_scale<F>(scales[i / 2], 2 * s + half) * c[i];
    }
  }
}

// What a workgroup works on.
struct Job {
  const uint8_t* w;
  const LinearPart* part;
  uint32_t first_tile;
  uint32_t n_columns;      // of this workgroup's expert, or of all
  const int32_t* choices;  // experts: choice of a column; null: the column itself, plus `choice`
  uint32_t choice;
  bool is_expert, is_valid;  // an id outside the experts gives NaN
};

template <int kTiles>
__device__ inline Job job_of(const LinearArgs& args, uint32_t n_rows) {
  Job job{};
  uint32_t p = 0;
  while (p + 1 < args.n_parts && blockIdx.x >= args.parts[p + 1].first_block) ++p;
  job.part = &args.parts[p];
  job.first_tile = (blockIdx.x - job.part->first_block) * kTiles;
  job.w = static_cast<const uint8_t*>(job.part->w);
  job.n_columns = n_rows;
  job.is_valid = true;
  if (args.choices == 0) return job;
  job.is_expert = true;
  uint32_t expert;
  if (args.items == nullptr) {  // an item is a choice
    job.choice = blockIdx.z;
    job.n_columns = blockIdx.z < n_rows * args.choices ? 1 : 0;
    expert = job.n_columns > 0 ? static_cast<uint32_t>(args.ids[blockIdx.z]) : 0;
  } else {
    const int32_t* item = args.items + 1 + 3 * blockIdx.z;
    const bool is_item = static_cast<int32_t>(blockIdx.z) < args.items[0];
    expert = is_item ? static_cast<uint32_t>(item[0]) : 0;
    job.choices = is_item ? args.order + item[1] : nullptr;
    job.n_columns = is_item ? static_cast<uint32_t>(item[2]) : 0;
  }
  job.is_valid = expert < args.n_experts;
  job.w += (job.is_valid ? expert : 0) * args.expert_pitch[p];
  return job;
}
// The row of x and the row of y of a column.
__device__ __forceinline__ uint32_t y_row(const Job& job, uint32_t column) {
  if (!job.is_expert) return column;
  return job.choices != nullptr ? static_cast<uint32_t>(job.choices[column]) : job.choice;
}
__device__ __forceinline__ uint32_t x_row(const LinearArgs& args, const Job& job, uint32_t column) {
  const uint32_t row = y_row(job, column);
  return job.is_expert && args.x_rows == 1 ? row / args.choices : row;
}
__device__ __forceinline__ uint32_t rows_of_x(const LinearArgs& args) {
  if (args.rows_symbol == kSymbolicTokens) return args.step->n_tokens;
  return args.rows_symbol == kSymbolicOutputs ? args.step->n_outputs : args.rows_symbol;
}
__device__ __forceinline__ void put(const LinearArgs& args, const Job& job, uint32_t column, uint32_t m, float v) {
  const uint64_t at = static_cast<uint64_t>(y_row(job, column)) * job.part->pitch + m;
  if (!job.is_valid) v = nan_value();
  if (job.part->bias != nullptr) v = v + job.part->bias[m];
  job.part->y[at] = v;
  if (args.residual != nullptr) args.residual[at] = args.residual[at] + v;
}

}  // namespace zinc_rt::cuda
