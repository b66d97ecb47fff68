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
  if (args.set != nullptr && args.set->linear_rows != nullptr && args.set->linear_rows(args, begin, end)) return;
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

constexpr std::uint32_t kNormTile = 32;  // tokens

// Of an activation row in the widest of the quantized types.
std::uint64_t quantized_row(std::uint32_t d) {
  return std::uint64_t{d} + d / 4 + 64;
}

}  // namespace

std::uint64_t norm_linear_lds(std::uint32_t d) {
  return std::uint64_t{d} * 4 * 2 + kNormTile * quantized_row(d);
}

void norm_linear(const CpuArgs& args, const float* x, const float* norm_w, std::uint32_t n, std::uint32_t d, float eps,
                 bool quantize, std::span<const NormLinearPart> parts) {
  auto* scratch = reinterpret_cast<float*>(args.lds);
  float* h = scratch + d;
  auto* quantized = reinterpret_cast<std::byte*>(h + d);
  const auto normalize = [&](std::uint32_t t) { rms_norm_row(x + std::uint64_t{t} * d, norm_w, h, d, d, eps); };
  for (std::uint32_t first = 0; first < n; first += kNormTile) {
    const std::uint32_t count = std::min(kNormTile, n - first);
    DType held = DType::kF32;  // what `quantized` holds of the tile
    for (const NormLinearPart& part : parts) {
      if (part.begin >= part.end) continue;
      const DType x_dtype = quantize ? act_dtype(part.w_dtype) : DType::kF32;
      const bool is_float = x_dtype == DType::kF32;
      const std::uint64_t pitch = is_float ? 0 : row_bytes(x_dtype, d);
      for (std::uint32_t t = 0; t < count && !is_float && held != x_dtype; ++t) {
        normalize(first + t);
        quantize_row(h, quantized + t * pitch, d, x_dtype);
      }
      if (!is_float) held = x_dtype;
      for (std::uint32_t t = 0; t < count; t += is_float ? 1 : count) {
        if (is_float) normalize(first + t);
        linear_rows(
            {part.w, part.w_dtype, part.bias, is_float ? static_cast<const void*>(h) : quantized, x_dtype, pitch, d,
             is_float ? 1 : count, part.y + std::uint64_t{first + t} * part.rows, part.rows, scratch, args.set},
            part.begin, part.end);
      }
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
                          reinterpret_cast<float*>(args.lds),
                          args.set};
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
