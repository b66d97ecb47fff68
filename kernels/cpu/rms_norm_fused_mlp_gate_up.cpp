// This is the CPU reference kernel of the op RMS_NORM_FUSED_MLP_GATE_UP. It computes h = RMS_NORM(x, norm_w), then gate
// = LINEAR(h, gate_w) and up = LINEAR(h, up_w). If quantize is 1, h is quantized to the type that each weight's format
// needs; if 0, it stays float.
// Shapes: x [n, d]; gate_w, up_w [f, d]; gate, up [n, f].
// Order of sums: that of the unfused ops, so the bits are theirs.
#include <algorithm>
#include <array>

#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::RmsNormFusedMlpGateUp;
constexpr NameList kSymbols{"dim:n", "dim:d", "dim:f", "dtype:gate_w", "dtype:up_w"};

constexpr std::uint32_t kTile = 64;

NormArgs norm_of(const CpuArgs& args) {
  const auto& c = args.constants<push::RmsNormFusedMlpGateUp>();
  return {args.buffer<const float>(Operand::x),
          args.buffer<const float>(Operand::norm_w),
          args.dim(kSymbols["dim:n"]),
          args.dim(kSymbols["dim:d"]),
          c.eps,
          c.quantize != 0};
}

// Lists the operands and symbols that belong to gate or to up.
struct Part {
  unsigned w, y;
  std::size_t w_dtype;
};
constexpr Part kParts[] = {{Operand::gate_w, Operand::gate, kSymbols["dtype:gate_w"]},
                           {Operand::up_w, Operand::up, kSymbols["dtype:up_w"]}};

std::array<NormLinearPart, 2> parts_of(const CpuArgs& args) {
  const std::uint32_t f = args.dim(kSymbols["dim:f"]);
  std::array<NormLinearPart, 2> parts;
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts[i] = {args.buffers[kParts[i].w],
                static_cast<DType>(args.symbols[kParts[i].w_dtype]),
                args.is_packed(kParts[i].w),
                nullptr,
                args.buffer<float>(kParts[i].y),
                f,
                args.wg[0] * kTile,
                std::min(f, (args.wg[0] + 1) * kTile)};
  return parts;
}

void prepare(const CpuArgs& args) {
  norm_linear_prepare(args, norm_of(args), parts_of(args));
}

void run(const CpuArgs& args) {
  norm_linear(args, norm_of(args), parts_of(args));
}

std::uint64_t lds(const std::uint32_t* s) {
  return norm_linear_lds(s[kSymbols["dim:d"]]);
}

std::uint32_t n_tokens(const CpuArgs& args) {
  return args.dim(kSymbols["dim:n"]);
}

std::uint64_t shared(const CpuArgs& args) {
  return args.dim(kSymbols["dim:n"]) * norm_linear_shared(args.dim(kSymbols["dim:d"]));
}

}  // namespace

extern const CpuKernel kCpuKernel_rms_norm_fused_mlp_gate_up;
const CpuKernel kCpuKernel_rms_norm_fused_mlp_gate_up{"RMS_NORM_FUSED_MLP_GATE_UP",
                                                      run,
                                                      kSymbols,
                                                      {{"f", kTile}, {}},
                                                      KeyTypes::kWeights,
                                                      lds,
                                                      prepare,
                                                      n_tokens,
                                                      shared};

}  // namespace zinc_rt::cpu
