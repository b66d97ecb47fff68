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
  const std::uint32_t f = args.dim(2), begin = args.wg[0] * kTile, end = std::min(f, begin + kTile);
  NormLinearPart parts[2];
  for (std::uint32_t i = 0; i < 2; ++i)
    parts[i] = {args.buffers[2 + i],
                static_cast<DType>(args.symbols[3 + i]),
                nullptr,
                args.buffer<float>(4 + i),
                f,
                begin,
                end};
  norm_linear(args, args.buffer<const float>(0), args.buffer<const float>(1), args.dim(0), args.dim(1), c.eps,
              c.quantize != 0, parts);
}

std::uint64_t lds(const std::uint32_t* s) {
  return norm_linear_lds(s[1]);
}

}  // namespace

extern const CpuKernel kCpuKernel_rms_norm_fused_mlp_gate_up;
const CpuKernel kCpuKernel_rms_norm_fused_mlp_gate_up{
    "RMS_NORM_FUSED_MLP_GATE_UP", run, {"dim:n", "dim:d", "dim:f", "dtype:gate_w", "dtype:up_w"}, {{"f", kTile}, {}},
    KeyTypes::kWeights,           lds};

}  // namespace zinc_rt::cpu
