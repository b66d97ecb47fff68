// RMS_NORM_FUSED_MLP_GATE_UP: h = RMS_NORM(x, norm_w), quantized as each weight's format wants (quantize = 1) or kept
// float (0); gate = LINEAR(h, gate_w), up = LINEAR(h, up_w). Shapes: x [n, d]; gate_w, up_w [f, d]; gate, up [n, f].
// Order: that of the ops, so the bits are theirs.
#include <algorithm>
#include <array>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

constexpr std::uint32_t kTile = 64;

NormArgs norm_of(const CpuArgs& args) {
  const auto& c = args.constants<push::RmsNormFusedMlpGateUp>();
  return {args.buffer<const float>(0), args.buffer<const float>(1), args.dim(0), args.dim(1), c.eps, c.quantize != 0};
}

std::array<NormLinearPart, 2> parts_of(const CpuArgs& args) {
  const std::uint32_t f = args.dim(2);
  std::array<NormLinearPart, 2> parts;
  for (std::uint32_t i = 0; i < 2; ++i)
    parts[i] = {args.buffers[2 + i],       static_cast<DType>(args.symbols[3 + i]),
                args.is_packed(2 + i),     nullptr,
                args.buffer<float>(4 + i), f,
                args.wg[0] * kTile,        std::min(f, (args.wg[0] + 1) * kTile)};
  return parts;
}

void prepare(const CpuArgs& args) {
  norm_linear_prepare(args, norm_of(args), parts_of(args));
}

void run(const CpuArgs& args) {
  norm_linear(args, norm_of(args), parts_of(args));
}

std::uint64_t lds(const std::uint32_t* s) {
  return norm_linear_lds(s[1]);
}

std::uint32_t n_tokens(const CpuArgs& args) {
  return args.dim(0);
}

std::uint64_t shared(const CpuArgs& args) {
  return args.dim(0) * norm_linear_shared(args.dim(1));
}

}  // namespace

extern const CpuKernel kCpuKernel_rms_norm_fused_mlp_gate_up;
const CpuKernel kCpuKernel_rms_norm_fused_mlp_gate_up{"RMS_NORM_FUSED_MLP_GATE_UP",
                                                      run,
                                                      {"dim:n", "dim:d", "dim:f", "dtype:gate_w", "dtype:up_w"},
                                                      {{"f", kTile}, {}},
                                                      KeyTypes::kWeights,
                                                      lds,
                                                      prepare,
                                                      n_tokens,
                                                      shared};

}  // namespace zinc_rt::cpu
