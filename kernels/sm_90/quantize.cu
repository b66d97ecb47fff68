// QUANTIZE: rows of floats to int8 with a scale a block of 32 or 256; warps have 256 values
// each. Grid: rows, and 2,048 values. kernels/cpu/quantize.cpp has the
// meaning, args.h the layout. Symbols: n, k, type (the number of DType).
#include "kernels/sm_90/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void quantize(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const uint32_t n = args.dim(0), k = args.dim(1), t = blockIdx.x;
  if (t >= n) return;
  const float* x = args.buffer<const float>(0) + static_cast<uint64_t>(t) * k;
  const Q8Rows y = q8_rows(args.buffers[1], n, k);
  const uint32_t n_warps = blockDim.x / 32, warp = blockIdx.y * n_warps + threadIdx.x / 32;
  if (args.symbols[2] == kQ8A256)
    quantize_row<true>(x, y, t, k, warp, gridDim.y * n_warps);
  else
    quantize_row<false>(x, y, t, k, warp, gridDim.y * n_warps);
}

// GLU and QUANTIZE of its rows. Buffers: gate, up, y, q8 rows, which must lie apart from the others. Symbols and grid
// as above; push: act.
extern "C" __global__ void glu_quantize(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const uint32_t n = args.dim(0), k = args.dim(1), t = blockIdx.x;
  if (t >= n) return;
  const uint64_t row = static_cast<uint64_t>(t) * k;
  const uint32_t act = args.constants<push::Glu>().act, n_warps = gridDim.y * blockDim.x / 32;
  const Q8Rows to = q8_rows(args.buffers[3], n, k);
  for (uint32_t first = (blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32) * 256; first < k; first += n_warps * 256) {
    const uint32_t at = first + threadIdx.x % 32 * 8;
    float v[8] = {};
    if (at < k) {
      const float4* gate = reinterpret_cast<const float4*>(args.buffer<const float>(0) + row + at);
      const float4* up = reinterpret_cast<const float4*>(args.buffer<const float>(1) + row + at);
      const float4 g[2] = {gate[0], gate[1]}, u[2] = {up[0], up[1]};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        v[4 * i] = activate(act, g[i].x) * u[i].x, v[4 * i + 1] = activate(act, g[i].y) * u[i].y;
        v[4 * i + 2] = activate(act, g[i].z) * u[i].z, v[4 * i + 3] = activate(act, g[i].w) * u[i].w;
        reinterpret_cast<float4*>(args.buffer<float>(2) + row + at)[i] =
            make_float4(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]);
      }
    }
    quantize_warp_as(args.symbols[2], v, to, t, k, at);
  }
}
