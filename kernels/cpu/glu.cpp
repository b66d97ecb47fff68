// This is the CPU reference kernel of the op GLU. It computes y = act(gate) * up, where act is silu (0) or gelu in its
// tanh form (1), or y = swiglu_oai(gate, up) (2; kernels/common/exact_math.h). y may be the same buffer as gate.
// Shapes: gate, up, y [n, f].
// Order of sums: there are none; each element is computed by itself.
#include "base/multiversion.h"
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::Glu;
constexpr NameList kSymbols{"dim:f"};

ZRT_MULTIVERSION void reference(std::uint32_t act, const float* gate, const float* up, float* y, std::uint32_t n) {
  if (act == push::kGeluTanh) {
    for (std::uint32_t i = 0; i < n; ++i) y[i] = exact::gelu_tanh(gate[i]) * up[i];
  } else if (act == push::kSwigluOai) {
    for (std::uint32_t i = 0; i < n; ++i) y[i] = exact::swiglu_oai(gate[i], up[i]);
  } else {
    for (std::uint32_t i = 0; i < n; ++i) y[i] = exact::silu(gate[i]) * up[i];
  }
}

void run(const CpuArgs& args) {
  const std::uint32_t width = args.dim(kSymbols["dim:f"]);
  const std::uint64_t at = std::uint64_t{args.wg[0]} * width;
  glu_row(args.constants<push::Glu>().act, args.buffer<const float>(Operand::gate) + at,
          args.buffer<const float>(Operand::up) + at, args.buffer<float>(Operand::y) + at, width, args.set);
}

}  // namespace

void glu_row(std::uint32_t act, const float* gate, const float* up, float* y, std::uint32_t n, const KernelSet* set) {
  if (set != nullptr && set->rows != nullptr) return set->rows->glu(act, gate, up, y, n);
  reference(act, gate, up, y, n);
}

extern const CpuKernel kCpuKernel_glu;
const CpuKernel kCpuKernel_glu{"GLU", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu
