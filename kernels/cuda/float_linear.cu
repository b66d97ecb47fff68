// LINEAR and every op that multiplies by float matrices. The file is compiled into one image per weight type
// (ZRT_WEIGHTS: F32, F16 or BF16). Which kernel the planner chooses:
// - linear_4: few rows of x, or few rows of W (float_few.cuh). linear_4_norm: the same for one row, with the RMS_NORM
//   before it
// - linear_columns_*: several rows of x; each kernel holds 4, 8 or 16 of them in registers (float_columns.cuh)
// - linear_widened: shapes that the others do not support, where k is not a multiple of 16
// - embed: EMBED, which reads rows of the same matrices
#include "kernels/cuda/float_columns.cuh"
#include "kernels/cuda/float_few.cuh"
#include "kernels/cuda/float_linear.cuh"

using namespace zinc_rt::cuda;

constexpr Format kFormat = ZRT_WEIGHTS;
constexpr int kAtOnce = kFormat == kF32 ? 2 : 3;  // Workgroups of linear_4 that share a multiprocessor.

extern "C" __global__ void __launch_bounds__(256) linear_widened(const __grid_constant__ LinearArgs args) {
  float_linear<kFormat>(args);
}
extern "C" __global__ void __launch_bounds__(256, kAtOnce) linear_4(const __grid_constant__ LinearArgs args) {
  float_linear_4<kFormat>(args);
}
extern "C" __global__ void __launch_bounds__(256, 1) linear_4_norm(const __grid_constant__ NormedArgs args) {
  norm_linear_4<kFormat>(args);
}
extern "C" __global__ void __launch_bounds__(256, 1) linear_columns_4(const __grid_constant__ LinearArgs args) {
  float_linear_columns<kFormat, 4>(args);
}
extern "C" __global__ void __launch_bounds__(256, 1) linear_columns_8(const __grid_constant__ LinearArgs args) {
  float_linear_columns<kFormat, 8>(args);
}
extern "C" __global__ void __launch_bounds__(256, 1) linear_columns_16(const __grid_constant__ LinearArgs args) {
  float_linear_columns<kFormat, 16>(args);
}
extern "C" __global__ void embed(const __grid_constant__ OpArgs args) {
  embed_row<kFormat>(args);
}
// Copies a piece of a matrix at upload. The values of a row are put into the order in which the lanes of the order of
// sums read them (lane_place in weights.cuh) if the matrix uses that layout (has_lanes), else they keep their order.
// F32 matrices always keep it.
extern "C" __global__ void repack(const RepackArgs args) {
  const uint64_t n = static_cast<uint64_t>(args.rows) * args.k,
                 n_threads = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += n_threads) {
    if constexpr (kFormat == kF32) {
      static_cast<float*>(args.to)[i] = static_cast<const float*>(args.from)[i];
    } else {
      const bool moves = has_lanes(kFormat, args.matrix_rows, args.k);
      const uint64_t to = moves ? i / args.k * args.k + lane_place(static_cast<uint32_t>(i % args.k), args.k) : i;
      static_cast<uint16_t*>(args.to)[to] = static_cast<const uint16_t*>(args.from)[i];
    }
  }
}
