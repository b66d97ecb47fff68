// LINEAR and every op that multiplies by float matrices, one image a type (ZRT_WEIGHTS); EMBED for the same.
#include "kernels/sm_90/float_linear.cuh"

using namespace zinc_rt::cuda;

constexpr Format kFormat = static_cast<Format>(ZRT_WEIGHTS);

extern "C" __global__ void __launch_bounds__(256) linear_widened(const __grid_constant__ LinearArgs args) {
  float_linear<kFormat>(args);
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
