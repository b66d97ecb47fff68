// Multiplies float rows of x by a float matrix, or by any matrix whose weights are converted to float one by one. This
// is the simple kernel (linear_widened), for shapes that float_few.cuh and float_columns.cuh do not support. The order
// of sums is that of docs/arithmetic.md, rule 4: each group of 256 values of k has 16 partial sums, called lanes, which
// are folded to the group's sum v.
// - A workgroup multiplies kFloatRows rows of W by kFloatColumns rows of x.
// - Each half warp takes groups in turn. Each of its 16 threads computes one of the 16 partial sums. The half warp
//   writes the sum v of each group to shared memory.
// - Each thread then adds up the sums v of one row of W and one row of x, in the order of the groups.
#pragma once

#include "kernels/cuda/linear_job.cuh"

namespace zinc_rt::cuda {

constexpr uint32_t kFloatGroups = 64;  // groups whose sums v are in shared memory before they are added up

// Folds kValues values at once over the 16 lanes of a half warp, in the order of kernels/common/fold.h. Afterwards lane
// l (0 to 15) has the sum of value l / (16 / kValues). mask: the lanes of the warp that call this together.
template <int kValues>
__device__ __forceinline__ float fold_values(float (&v)[kValues], uint32_t lane, uint32_t mask) {
#pragma unroll
  for (int level = 0; level < 4; ++level) {
    const int width = 8 >> level, left = kValues >> (level + 1);  // number of values that remain after this exchange
    const bool upper = (lane & width) != 0;
#pragma unroll
    for (int j = 0; j < kValues / 2; ++j) {
      if (j >= left) break;
      const float mine = upper ? v[j + left] : v[j], other = upper ? v[j] : v[j + left];
      v[j] = mine + __shfl_xor_sync(mask, other, width);
    }
    if (left == 0) v[0] = v[0] + __shfl_xor_sync(mask, v[0], width);
  }
  return v[0];
}

// Grid: (blocks of kFloatRows rows of all parts (matrices), tiles of kFloatColumns rows of x, items of experts). An
// item is rows of x that chose the same expert.
template <Format F>
__device__ __forceinline__ void float_linear(const LinearArgs& args) {
  __shared__ float shared[kFloatGroups * kFloatColumns * kFloatRows];  // v[group][column][row]
  const uint32_t half = threadIdx.x / 16, n_halves = blockDim.x / 16, lane = threadIdx.x % 16;
  const uint32_t mask = 0xFFFFu << (threadIdx.x & 16), k = args.k, n_groups = (k + 255) / 256;
  wait_for_inputs();
  let_next_start();
  const uint32_t n_rows = rows_of_x(args), first_column = blockIdx.y * kFloatColumns;
  const Job job = job_of(args, blockIdx.x, blockIdx.z, n_rows);
  if (first_column >= job.n_columns) return;
  const uint32_t rows = job.part->rows, first_row = job.first_tile * kFloatRows;
  const uint32_t n_columns =
      job.n_columns - first_column < kFloatColumns ? job.n_columns - first_column : kFloatColumns;
  // The sum of this thread: row threadIdx.x % kFloatRows, column threadIdx.x / kFloatRows.
  float acc = 0.0f;
  for (uint32_t begin = 0; begin < n_groups; begin += kFloatGroups) {
    const uint32_t end = n_groups - begin < kFloatGroups ? n_groups : begin + kFloatGroups;
    for (uint32_t g = begin + half; g < end; g += n_halves) {
      const uint32_t first = g * 256, n = k - first < 256 ? k - first : 256;
      for (uint32_t r = 0; r < kFloatRows; r += 4) {
        float w[4][16];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const uint32_t m = first_row + r + i;
#pragma unroll
          for (int l = 0; l < 16; ++l)
            w[i][l] = l * 16 + lane < n
                          ? weight_value<F>(job.w, rows, k, m < rows ? m : rows - 1, first + l * 16 + lane)
                          : 0.0f;
        }
        for (uint32_t c = 0; c < n_columns; ++c) {
          const float* x = static_cast<const float*>(args.x) +
                           static_cast<uint64_t>(x_row(args, job, first_column + c)) * k + first + lane;
          float v[4] = {};
          if (n == 256) {
#pragma unroll
            for (int i = 0; i < 16; ++i) {
              const float value = x[i * 16];
#pragma unroll
              for (int j = 0; j < 4; ++j) v[j] = __fmaf_rn(w[j][i], value, v[j]);
            }
          } else {
#pragma unroll
            for (int i = 0; i < 16; ++i)
              if (i * 16 + lane < n) {
                const float value = x[i * 16];
#pragma unroll
                for (int j = 0; j < 4; ++j) v[j] = __fmaf_rn(w[j][i], value, v[j]);
              }
          }
          const float sum = fold_values(v, lane, mask);
          if (lane % 4 == 0) shared[((g - begin) * kFloatColumns + c) * kFloatRows + r + lane / 4] = sum;
        }
      }
    }
    __syncthreads();
    if (threadIdx.x < kFloatRows * kFloatColumns)
      for (uint32_t g = 0; g < end - begin; ++g) acc = acc + shared[g * kFloatRows * kFloatColumns + threadIdx.x];
    __syncthreads();
  }
  const uint32_t m = first_row + threadIdx.x % kFloatRows, column = threadIdx.x / kFloatRows;
  if (threadIdx.x < kFloatRows * kFloatColumns && m < rows && column < n_columns)
    put(args, job, first_column + column, m, acc);
}

// Returns the id of token t (kernels/cpu/embed.cpp), or -1 if it names no word of the slot table.
__device__ __forceinline__ int32_t id_of(const OpArgs& args, uint32_t t) {
  const int32_t id = args.buffer<const int32_t>(binding::Embed::ids)[t];
  const auto* slots = args.buffer<const int32_t>(binding::Embed::slots);
  if (id >= 0 || slots == nullptr) return id;
  const uint32_t s = args.dim(symbol::Embed::s), fields = args.dim(symbol::Embed::fields);
  const auto slot = static_cast<uint32_t>(args.buffer<const int32_t>(binding::Embed::slot)[t]);
  const auto field = static_cast<uint32_t>(-1 - id);
  return slot < s && field < fields ? slots[static_cast<uint64_t>(slot) * fields + field] : -1;
}

// EMBED: y[t] = scale * table[id_of(t)]; an id outside the table gives NaN.
template <Format F>
__device__ __forceinline__ void embed_row(const OpArgs& args) {
  wait_for_inputs();
  let_next_start();
  const uint32_t t = blockIdx.x, v = args.dim(symbol::Embed::v), d = args.dim(symbol::Embed::d);
  if (t >= args.dim(symbol::Embed::rows)) return;
  const auto id = static_cast<uint32_t>(id_of(args, t));
  const float scale = args.constants<push::Embed>().scale;
  float* y = args.buffer<float>(binding::Embed::y) + static_cast<uint64_t>(t) * d;
  for (uint32_t i = blockIdx.y * blockDim.x + threadIdx.x; i < d; i += gridDim.y * blockDim.x) {
    float value = nan_value();
    if (id < v) {
      value = weight_value<F>(args.buffers[binding::Embed::table], v, d, id, i);
      if (scale != 1.0f) value = value * scale;
    }
    y[i] = value;
  }
}

}  // namespace zinc_rt::cuda
