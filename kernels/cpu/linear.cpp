// LINEAR: y[t][m] = dot(w[m], x[t]) + bias[m]. Shapes: x [n, k], w [m, k], bias [m] or absent, y [n, m].
// x of type q8a32 or q8a256 (made by QUANTIZE): the format's integer dot (rule 3). x of type f32: the weight row is
// widened to float and the float dot of rule 4 is used, for float weights and for the debugging mode activations = f32.
// Order: the dot's own, written in quant/<format>.cpp; the bias is added last. Rows and tokens are independent.
#include <algorithm>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/quant.h"

namespace zinc_rt::cpu {

void linear_rows(const LinearArgs& args, std::uint32_t begin, std::uint32_t end) {
  const QuantFormat& format = *quant_format(args.w_dtype);
  const QuantFormat& f32 = *quant_format(DType::kF32);
  const auto* x = static_cast<const std::byte*>(args.x);
  const std::uint64_t w_row = row_bytes(args.w_dtype, args.k);
  const bool integer = args.x_dtype != DType::kF32;
  for (std::uint32_t m = begin; m < end; ++m) {
    const void* row = static_cast<const std::byte*>(args.w) + m * w_row;
    const auto dot = integer ? format.dot : f32.dot;
    if (!integer && args.w_dtype != DType::kF32) {
      format.dequantize_row(row, args.scratch, args.k);
      row = args.scratch;
    }
    for (std::uint32_t t = 0; t < args.n; ++t) {
      const float v = dot(row, x + t * args.x_pitch, args.k);
      args.y[t * args.y_pitch + m] = args.bias != nullptr ? v + args.bias[m] : v;
    }
  }
}

namespace {

constexpr std::uint32_t kTile = 64;

void run(const CpuArgs& args) {
  const std::uint32_t n = args.dim(0), k = args.dim(1), m = args.dim(2);
  const auto x_dtype = static_cast<DType>(args.symbols[4]);
  const LinearArgs linear{args.buffers[1],
                          static_cast<DType>(args.symbols[3]),
                          args.buffer<const float>(2),
                          args.buffers[0],
                          x_dtype,
                          row_bytes(x_dtype, k),
                          k,
                          n,
                          args.buffer<float>(3),
                          m,
                          reinterpret_cast<float*>(args.lds)};
  linear_rows(linear, args.wg[0] * kTile, std::min(m, (args.wg[0] + 1) * kTile));
}

}  // namespace

extern const CpuKernel kCpuKernel_linear;
const CpuKernel kCpuKernel_linear{"LINEAR",
                                  run,
                                  {"dim:n", "dim:k", "dim:m", "dtype:w", "dtype:x"},
                                  {{"m", kTile}, {}},
                                  KeyTypes::kWeights,
                                  [](const std::uint32_t* s) { return std::uint64_t{s[1]} * 4; }};

}  // namespace zinc_rt::cpu
