// QUANTIZE: turns rows of floats into codes with one scale per block of 32 or 256 values. kernels/cpu/quantize.cpp
// defines the result, linear_args.h (ActRows) the layout.
// Grid: (rows, parts of a row of 2,048 values). Each warp quantizes 256 values at a time, eight per lane (Eight in
// device.cuh).
#include "kernels/cuda/row_tiles.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void quantize(const __grid_constant__ OpArgs args) {
  const uint32_t n = args.dim(symbol::Quantize::rows), k = args.dim(symbol::Quantize::k), t = blockIdx.x;
  begin_rows(n);
  if (t >= n) return;
  const float* x = args.buffer<const float>(binding::Quantize::x) + static_cast<uint64_t>(t) * k;
  const uint32_t n_warps = blockDim.x / 32, warp = blockIdx.y * n_warps + threadIdx.x / 32;
  // The loop's condition is the same for all lanes of a warp, because they exchange values. In the last group of 256,
  // lanes whose values would lie behind the end of the row load zeros and store nothing.
  for (uint32_t first = warp * 256; first < k; first += gridDim.y * n_warps * 256) {
    const uint32_t at = first + first_of_eight();
    quantize_eight(args.symbols[symbol::Quantize::dtype_y], load_eight(x, at, k), args.buffers[binding::Quantize::y], n,
                   t, k, at);
  }
}

// GLU and the QUANTIZE of its rows in one launch. y receives the float rows and `quantized` the codes; it must not
// share memory with the other buffers. `digits` receives the same codes in the layout that digit_rows.cu would write;
// it may be null. Push constant: act, the activation function.
// Grid: (rows, parts of a row of four groups of 256 values). Each warp computes one group. The eight values of a lane
// are independent, which is enough to overlap the long chain of instructions that each value takes.
extern "C" __global__ void __launch_bounds__(128) glu_quantize(const __grid_constant__ OpArgs args) {
  const uint32_t n = args.dim(symbol::GluQuantize::rows), k = args.dim(symbol::GluQuantize::k), t = blockIdx.x,
                 first = (blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32) * 256, at = first + first_of_eight();
  begin_rows(n);
  if (t >= n || first >= k) return;
  const uint64_t row = static_cast<uint64_t>(t) * k;
  const Eight gate = load_eight(args.buffer<const float>(binding::GluQuantize::gate) + row, at, k),
              up = load_eight(args.buffer<const float>(binding::GluQuantize::up) + row, at, k);
  Eight y;
  if (args.constants<push::Glu>().act == push::kGeluTanh) {
#pragma unroll
    for (int i = 0; i < 8; ++i) y.v[i] = exact::gelu_tanh(gate.v[i]) * up.v[i];
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) y.v[i] = exact::silu(gate.v[i]) * up.v[i];
  }
  if (at < k) {
    auto* to = reinterpret_cast<float4*>(args.buffer<float>(binding::GluQuantize::y) + row + at);
    to[0] = make_float4(y.v[0], y.v[1], y.v[2], y.v[3]);
    to[4] = make_float4(y.v[4], y.v[5], y.v[6], y.v[7]);
  }
  quantize_to_tiles(args.symbols[symbol::GluQuantize::dtype_y], y, args.buffers[binding::GluQuantize::quantized], n, t,
                    k, at, args.buffers[binding::GluQuantize::digits],
                    args.symbols[symbol::GluQuantize::digit_columns]);
}
