// LINEAR and every op that multiplies by float matrices, one image a type (ZRT_WEIGHTS): for few rows of x or of W
// (also one row with the RMS_NORM before it), and for several by columns; what these do not take (k that is no multiple
// of 16) goes to linear_widened. EMBED for the same.
#include "kernels/cuda/float_columns.cuh"
#include "kernels/cuda/float_few.cuh"
#include "kernels/cuda/float_linear.cuh"

using namespace zinc_rt::cuda;

constexpr Format kFormat = ZRT_WEIGHTS;
constexpr int kAtOnce = kFormat == kF32 ? 2 : 3;  // workgroups of linear_4 on a multiprocessor

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
// The values of a row into the order of lanes (weights.cuh), or as they are.
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
