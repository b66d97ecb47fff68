// This is the CPU reference kernel of the op ARGMAX. It computes token[r], the index of the largest logit of row r. Of
// equal logits the lower index counts. NaN never wins. The result of a row of only NaN is 0.
// Shapes: logits [n, v], token [n].
// Order of sums: there are none.
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {

std::uint32_t argmax_row(const float* x, std::uint32_t n) {
  std::uint32_t best = 0;
  for (std::uint32_t i = 1; i < n; ++i)
    if (x[i] > x[best] || x[best] != x[best]) best = i;
  return x[best] == x[best] ? best : 0;
}

namespace {

using Operand = operand::Argmax;
constexpr NameList kSymbols{"dim:v"};

void run(const CpuArgs& args) {
  const std::uint32_t v = args.dim(kSymbols["dim:v"]), r = args.wg[0];
  args.buffer<std::int32_t>(Operand::token)[r] =
      static_cast<std::int32_t>(argmax_row(args.buffer<const float>(Operand::logits) + std::uint64_t{r} * v, v));
}

}  // namespace

extern const CpuKernel kCpuKernel_argmax;
const CpuKernel kCpuKernel_argmax{"ARGMAX", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu
