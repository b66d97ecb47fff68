// LINEAR and every op that multiplies by quantized matrices, compiled into one image per weight format (ZRT_WEIGHTS).
// The kernels, by rows of x:
// - linear_1*: one row, in blocks of one or two (_of_2) tiles of W; also with the RMS_NORM before it (_norm), the
//   QUANTIZE before it (_floats), or the GLU after it (_glu)
// - linear_8, linear_16, linear_32: up to so many rows. linear_8_by_warp: experts' items of up to 8 rows
// - linear_tile_32: blocks of 32 rows of W by 64 of x. linear_tile_128: 128 by 128, with 16 warps, or 8 (_w8)
// - linear_widened: LINEAR of x that is floats. embed: EMBED. Both convert single weights to float
#include "kernels/cuda/float_linear.cuh"
#include "kernels/cuda/linear.cuh"
#include "kernels/cuda/linear_by_warp.cuh"
#include "kernels/cuda/linear_tile.cuh"

using namespace zinc_rt::cuda;

constexpr Format kFormat = ZRT_WEIGHTS;
// A group of FIXED16 is so large that the kernels for few rows of x have one workgroup per multiprocessor, and that
// large tiles do not fit at all.
constexpr bool kIsWide = kFormat == kFixed16;
constexpr int kTwo = kIsWide ? 1 : 2, kThree = kIsWide ? 1 : 3;

extern "C" __global__ void __launch_bounds__(288, 3) linear_1(const __grid_constant__ LinearArgs args) {
  linear<kFormat, OneColumn<kFormat, 1>>(args);
  end_product(args);
}
extern "C" __global__ void __launch_bounds__(288, kTwo) linear_1_of_2(const __grid_constant__ LinearArgs args) {
  linear<kFormat, OneColumn<kFormat, 2>>(args);
  end_product(args);
}
extern "C" __global__ void __launch_bounds__(288, 3) linear_1_norm(const __grid_constant__ LinearArgs args) {
  linear<kFormat, OneColumn<kFormat, 1>, true>(args);
  end_product(args);
}
extern "C" __global__ void __launch_bounds__(288, kTwo) linear_1_of_2_norm(const __grid_constant__ LinearArgs args) {
  linear<kFormat, OneColumn<kFormat, 2>, true>(args);
  end_product(args);
}
extern "C" __global__ void __launch_bounds__(288, kTwo) linear_1_glu(const __grid_constant__ LinearArgs args) {
  linear<kFormat, OneColumn<kFormat, 2>, false, true>(args);
  end_product(args);
}
extern "C" __global__ void __launch_bounds__(288, kTwo) linear_1_norm_glu(const __grid_constant__ LinearArgs args) {
  linear<kFormat, OneColumn<kFormat, 2>, true, true>(args);
  end_product(args);
}
extern "C" __global__ void __launch_bounds__(288, 3) linear_1_floats(const __grid_constant__ LinearArgs args) {
  linear<kFormat, FloatColumn<kFormat, 1>>(args);
  end_product(args);
}
extern "C" __global__ void __launch_bounds__(288, kTwo) linear_1_of_2_floats(const __grid_constant__ LinearArgs args) {
  linear<kFormat, FloatColumn<kFormat, 2>>(args);
  end_product(args);
}
extern "C" __global__ void __launch_bounds__(288, kThree) linear_8(const __grid_constant__ LinearArgs args) {
  linear<kFormat, Columns<kFormat, 1>>(args);
  end_product(args);
}
extern "C" __global__ void __launch_bounds__(256, kThree) linear_8_by_warp(const __grid_constant__ LinearArgs args) {
  linear_by_warp<kFormat>(args);
  end_product(args);
}
extern "C" __global__ void __launch_bounds__(320, kTwo) linear_16(const __grid_constant__ LinearArgs args) {
  linear<kFormat, Columns<kFormat, 2>>(args);
  end_product(args);
}
extern "C" __global__ void __launch_bounds__(384, 1) linear_32(const __grid_constant__ LinearArgs args) {
  linear<kFormat, Columns<kFormat, 4>>(args);
  end_product(args);
}
static_assert(linear_threads(1) == 288 && linear_threads(2) == 320 && linear_threads(4) == 384);
static_assert(kByWarpThreads == 256 && kByWarpWorkgroups == 3);
static_assert(kLargeTile.threads == 512 && kSmallTile.threads == 256);
extern "C" __global__ void __launch_bounds__(512, 1) linear_tile_128(const __grid_constant__ LinearArgs args) {
  if constexpr (!kIsWide) linear_tile<TileProduct<kFormat, kLargeTile.tiles, 4, 4, 4>>(args);
  end_product(args);
}
extern "C" __global__ void __launch_bounds__(256, 1) linear_tile_128_w8(const __grid_constant__ LinearArgs args) {
  if constexpr (!kIsWide) linear_tile<TileProduct<kFormat, kFewWarpsTile.tiles, 4, 2, 8>>(args);
  end_product(args);
}
extern "C" __global__ void __launch_bounds__(256, 2) linear_tile_32(const __grid_constant__ LinearArgs args) {
  linear_tile<TileProduct<kFormat, kSmallTile.tiles, 2, 4, 2>>(args);
  end_product(args);
}
extern "C" __global__ void __launch_bounds__(256) linear_widened(const __grid_constant__ LinearArgs args) {
  float_linear<kFormat>(args);
}
extern "C" __global__ void embed(const __grid_constant__ OpArgs args) {
  embed_row<kFormat>(args);
}

// Copies a piece of a matrix at upload, from the file's layout to tiles (weights.cuh). Each thread copies one lane's
// share of one step of a tile's group; then all threads copy the rows behind the last tile.
extern "C" __global__ void repack(const RepackArgs args) {
  const auto* from = static_cast<const uint8_t*>(args.from);
  auto* to = static_cast<uint8_t*>(args.to);
  const uint64_t row_bytes = row_bytes_of<kFormat>(args.k), n_threads = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  const uint32_t n_tiles = args.rows / 16, all_steps = args.k / 32;
  const uint64_t first = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (uint64_t i = first; i < static_cast<uint64_t>(n_tiles) * all_steps * 32; i += n_threads) {
    const uint32_t lane = i % 32, step = i / 32 % all_steps % 8, g = i / 32 % all_steps / 8, tile = i / 32 / all_steps;
    const uint32_t steps = all_steps - g * 8 < 8 ? all_steps - g * 8 : 8;
    pack_rows<kFormat>(to + tile * 16 * row_bytes + 16 * row_bytes_of<kFormat>(g * 256),
                       from + tile * 16 * row_bytes + row_bytes_of<kFormat>(g * 256), row_bytes, 16, steps, step, lane);
  }
  const uint64_t done = n_tiles * 16 * row_bytes, bytes = args.rows * row_bytes;
  for (uint64_t i = done + first; i < bytes; i += n_threads) to[i] = from[i];
}
