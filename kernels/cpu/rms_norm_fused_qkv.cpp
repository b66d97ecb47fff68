// RMS_NORM_FUSED_QKV: h = RMS_NORM(x, norm_w); h is quantized as each weight's format wants (quantize = 1) or kept
// float (0); then q = LINEAR(h, q_w, q_b), k = LINEAR(h, k_w, k_b), v = LINEAR(h, v_w, v_b). Shapes: x [n, d]; q_w [nq,
// d], k_w [nk, d], v_w [nv, d]; q [n, nq], k [n, nk], v [n, nv]. Order: that of the three ops, so the bits are theirs.
// A workgroup holds a tile of rows of q, k and v laid end to end.
#include <algorithm>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

constexpr std::uint32_t kTile = 64;

void run(const CpuArgs& args) {
  const auto& c = args.constants<push::RmsNormFusedQkv>();
  const std::uint32_t n = args.dim(0), d = args.dim(1);
  auto* scratch = reinterpret_cast<float*>(args.lds);
  float* h = scratch + d;
  auto* quantized = reinterpret_cast<std::byte*>(h + d);
  const auto* x = args.buffer<const float>(0);
  const auto* norm_w = args.buffer<const float>(1);
  for (std::uint32_t t = 0; t < n; ++t) {
    rms_norm_row(x + std::uint64_t{t} * d, norm_w, h, d, d, c.eps);
    DType held = DType::kF32;  // what `quantized` holds of h
    for (std::uint32_t part = 0; part < 3; ++part) {
      const std::uint32_t rows = args.dim(2 + part);
      const auto w_dtype = static_cast<DType>(args.symbols[5 + part]);
      const DType x_dtype = c.quantize != 0 ? act_dtype(w_dtype) : DType::kF32;
      const std::uint32_t begin = std::min(rows, args.wg[0] * kTile), end = std::min(rows, (args.wg[0] + 1) * kTile);
      if (begin == end) continue;
      if (x_dtype != held && x_dtype != DType::kF32) quantize_row(h, quantized, d, held = x_dtype);
      const LinearArgs linear{args.buffers[2 + part],
                              w_dtype,
                              args.buffer<const float>(5 + part),
                              x_dtype == DType::kF32 ? static_cast<const void*>(h) : quantized,
                              x_dtype,
                              0,
                              d,
                              1,
                              args.buffer<float>(8 + part) + std::uint64_t{t} * rows,
                              rows,
                              scratch};
      linear_rows(linear, begin, end);
    }
  }
}

std::uint64_t lds(const std::uint32_t* s) {
  return std::uint64_t{s[1]} * 4 * 2 + std::uint64_t{s[1]} * 2 + 512;
}

}  // namespace

extern const CpuKernel kCpuKernel_rms_norm_fused_qkv;
const CpuKernel kCpuKernel_rms_norm_fused_qkv{
    "RMS_NORM_FUSED_QKV",
    run,
    {"dim:n", "dim:d", "dim:nq", "dim:nk", "dim:nv", "dtype:q_w", "dtype:k_w", "dtype:v_w"},
    {{"nq", kTile}, {}},
    KeyTypes::kWeights,
    lds};

}  // namespace zinc_rt::cpu
