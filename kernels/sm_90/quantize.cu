// QUANTIZE: rows of floats to int8 with a scale a block of 32 or 256; a workgroup a row. kernels/cpu/quantize.cpp has the
// meaning, args.h the layout. Symbols: n, k, type (the number of DType).
#include "kernels/sm_90/device.cuh"

using namespace zinc_rt::cuda;
namespace exact = zinc_rt::exact;
namespace push = zinc_rt::push;

constexpr uint32_t kQ8A256 = 20;  // cpp/base/dtype.h

extern "C" __global__ void quantize(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const uint32_t n = args.dim(0), k = args.dim(1), t = blockIdx.x;
  if (t >= n) return;
  const float* x = args.buffer<const float>(0) + static_cast<uint64_t>(t) * k;
  const Q8Rows y = q8_rows(args.buffers[1], n, k);
  if (args.symbols[2] == kQ8A256)
    quantize_row<true>(x, y, t, k);
  else
    quantize_row<false>(x, y, t, k);
}

// GLU and QUANTIZE of its rows. Buffers: gate, up, y, q8 rows. Symbols as above; push: act.
extern "C" __global__ void glu_quantize(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const uint32_t n = args.dim(0), k = args.dim(1), t = blockIdx.x;
  if (t >= n) return;
  const uint64_t row = static_cast<uint64_t>(t) * k;
  const float *gate = args.buffer<const float>(0) + row, *up = args.buffer<const float>(1) + row;
  float* y = args.buffer<float>(2) + row;
  const uint32_t act = args.constants<push::Glu>().act;
  // A warp quantizes what it has computed: values [w 256, w 256 + 256) of each round.
  for (uint32_t first = threadIdx.x / 32 * 256; first < k; first += blockDim.x * 8)
    for (uint32_t i = first + threadIdx.x % 32; i < first + 256 && i < k; i += 32) y[i] = activate(act, gate[i]) * up[i];
  __syncthreads();
  const Q8Rows to = q8_rows(args.buffers[3], n, k);
  if (args.symbols[2] == kQ8A256)
    quantize_row<true>(y, to, t, k);
  else
    quantize_row<false>(y, to, t, k);
}
