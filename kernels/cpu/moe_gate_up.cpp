// This is the CPU reference kernel of the op MOE_GATE_UP. It computes two MOE_LINEARs at once: for each of a token's k
// chosen experts, gate = LINEAR(x, gate_w[id]) and up = LINEAR(x, up_w[id]). An id outside [0, e) yields NaN.
// Shapes: x [n, d], gate_w, up_w [e, f, d], ids [n, k], gate, up [n, k * f].
// Order of sums: as in LINEAR.
#include <algorithm>

#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::MoeGateUp;
constexpr NameList kSymbols{"dim:n",        "dim:d",      "dim:e",   "dim:f",        "dim:k",
                            "dtype:gate_w", "dtype:up_w", "dtype:x", "pitch:gate_w", "pitch:up_w"};

// Lists the operands and symbols that belong to gate or to up.
struct Part {
  unsigned w, y;
  std::size_t w_dtype, w_pitch;
};
constexpr Part kParts[] = {{Operand::gate_w, Operand::gate, kSymbols["dtype:gate_w"], kSymbols["pitch:gate_w"]},
                           {Operand::up_w, Operand::up, kSymbols["dtype:up_w"], kSymbols["pitch:up_w"]}};

void run(const CpuArgs& args) {
  const std::uint32_t f = args.dim(kSymbols["dim:f"]);
  for (const Part& part : kParts) {
    const MoeLinearArgs linear{args.buffers[part.w],
                               static_cast<DType>(args.symbols[part.w_dtype]),
                               args.is_packed(part.w),
                               args.symbols[part.w_pitch],
                               args.buffers[Operand::x],
                               static_cast<DType>(args.symbols[kSymbols["dtype:x"]]),
                               1,
                               args.buffer<const std::int32_t>(Operand::ids),
                               args.dim(kSymbols["dim:n"]),
                               args.dim(kSymbols["dim:k"]),
                               args.dim(kSymbols["dim:e"]),
                               f,
                               args.dim(kSymbols["dim:d"]),
                               args.buffer<float>(part.y),
                               args.lds,
                               args.set};
    moe_linear_tile(linear, args.wg[0], args.wg[1] * kMoeTile, std::min(f, (args.wg[1] + 1) * kMoeTile));
  }
}

}  // namespace

extern const CpuKernel kCpuKernel_moe_gate_up;
const CpuKernel kCpuKernel_moe_gate_up{
    "MOE_GATE_UP",      run,
    kSymbols,           {{"e"}, {"f", kMoeTile}},
    KeyTypes::kWeights, [](const std::uint32_t* s) { return moe_linear_lds(s[kSymbols["dim:d"]]); }};

}  // namespace zinc_rt::cpu
