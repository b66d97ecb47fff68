// This is the CPU reference kernel of the op RMS_NORM_FUSED_QKV. It computes h = RMS_NORM(x, norm_w), then q =
// LINEAR(h, q_w, q_b), k = LINEAR(h, k_w, k_b) and v = LINEAR(h, v_w, v_b). If quantize is 1, h is quantized to the
// type that each weight's format needs; if 0, it stays float. A workgroup computes a tile of the concatenated rows of
// q, k and v.
// Shapes: x [n, d]; q_w [nq, d], k_w [nk, d], v_w [nv, d]; q [n, nq], k [n, nk], v [n, nv].
// Order of sums: that of the unfused ops, so the bits are theirs.
#include <algorithm>
#include <array>

#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::RmsNormFusedQkv;
constexpr NameList kSymbols{"dim:n", "dim:d", "dim:nq", "dim:nk", "dim:nv", "dtype:q_w", "dtype:k_w", "dtype:v_w"};

constexpr std::uint32_t kTile = 64;

NormArgs norm_of(const CpuArgs& args) {
  const auto& c = args.constants<push::RmsNormFusedQkv>();
  return {args.buffer<const float>(Operand::x),
          args.buffer<const float>(Operand::norm_w),
          args.dim(kSymbols["dim:n"]),
          args.dim(kSymbols["dim:d"]),
          c.eps,
          c.quantize != 0};
}

// Lists the operands and symbols that belong to q, k or v.
struct Part {
  unsigned w, bias, y;
  std::size_t rows, w_dtype;
};
constexpr Part kParts[] = {{Operand::q_w, Operand::q_b, Operand::q, kSymbols["dim:nq"], kSymbols["dtype:q_w"]},
                           {Operand::k_w, Operand::k_b, Operand::k, kSymbols["dim:nk"], kSymbols["dtype:k_w"]},
                           {Operand::v_w, Operand::v_b, Operand::v, kSymbols["dim:nv"], kSymbols["dtype:v_w"]}};

std::array<NormLinearPart, 3> parts_of(const CpuArgs& args) {
  std::array<NormLinearPart, 3> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = kParts[i];
    const std::uint32_t rows = args.dim(part.rows);
    parts[i] = {args.buffers[part.w],
                static_cast<DType>(args.symbols[part.w_dtype]),
                args.is_packed(part.w),
                args.buffer<const float>(part.bias),
                args.buffer<float>(part.y),
                rows,
                std::min(rows, args.wg[0] * kTile),
                std::min(rows, (args.wg[0] + 1) * kTile)};
  }
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

extern const CpuKernel kCpuKernel_rms_norm_fused_qkv;
const CpuKernel kCpuKernel_rms_norm_fused_qkv{
    "RMS_NORM_FUSED_QKV", run, kSymbols, {{"nq", kTile}, {}}, KeyTypes::kWeights, lds, prepare, n_tokens, shared};

}  // namespace zinc_rt::cpu
