// RMS_NORM_FUSED_MLP_GATE_UP: h = RMS_NORM(x, norm_w), quantized as each weight's format wants (quantize = 1) or kept
// float (0); gate = LINEAR(h, gate_w), up = LINEAR(h, up_w). Shapes: x [n, d]; gate_w, up_w [f, d]; gate, up [n, f].
// Order: that of the ops, so the bits are theirs.
#include <algorithm>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

constexpr std::uint32_t kTile = 64;

void run(const CpuArgs& args) {
  const auto& c = args.constants<push::RmsNormFusedMlpGateUp>();
  const std::uint32_t n = args.dim(0), d = args.dim(1), f = args.dim(2);
  auto* scratch = reinterpret_cast<float*>(args.lds);
  float* h = scratch + d;
  auto* quantized = reinterpret_cast<std::byte*>(h + d);
  for (std::uint32_t t = 0; t < n; ++t) {
    rms_norm_row(args.buffer<const float>(0) + std::uint64_t{t} * d, args.buffer<const float>(1), h, d, d, c.eps);
    DType held = DType::kF32;  // what `quantized` holds of h
    for (std::uint32_t part = 0; part < 2; ++part) {
      const auto w_dtype = static_cast<DType>(args.symbols[3 + part]);
      const DType x_dtype = c.quantize != 0 ? act_dtype(w_dtype) : DType::kF32;
      if (x_dtype != held && x_dtype != DType::kF32) quantize_row(h, quantized, d, held = x_dtype);
      const LinearArgs linear{args.buffers[2 + part],
                              w_dtype,
                              nullptr,
                              x_dtype == DType::kF32 ? static_cast<const void*>(h) : quantized,
                              x_dtype,
                              0,
                              d,
                              1,
                              args.buffer<float>(4 + part) + std::uint64_t{t} * f,
                              f,
                              scratch};
      linear_rows(linear, args.wg[0] * kTile, std::min(f, (args.wg[0] + 1) * kTile));
    }
  }
}

std::uint64_t lds(const std::uint32_t* s) {
  return std::uint64_t{s[1]} * 4 * 2 + std::uint64_t{s[1]} * 2 + 512;
}

}  // namespace

extern const CpuKernel kCpuKernel_rms_norm_fused_mlp_gate_up;
const CpuKernel kCpuKernel_rms_norm_fused_mlp_gate_up{
    "RMS_NORM_FUSED_MLP_GATE_UP", run, {"dim:n", "dim:d", "dim:f", "dtype:gate_w", "dtype:up_w"}, {{"f", kTile}, {}},
    KeyTypes::kWeights,           lds};

}  // namespace zinc_rt::cpu
