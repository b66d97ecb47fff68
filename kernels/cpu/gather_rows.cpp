// This is the CPU reference kernel of the op GATHER_ROWS. It computes y[r] = x[rows[r]], where rows[] are the tokens
// whose logits are needed. A row outside x yields NaN.
// Shapes: x [n, d], rows [r], y [r, d].
// Order of sums: there are none.
#include <algorithm>
#include <cmath>

#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::GatherRows;
constexpr NameList kSymbols{"dim:d", "dim:n"};

void run(const CpuArgs& args) {
  const std::uint32_t d = args.dim(kSymbols["dim:d"]), n = args.dim(kSymbols["dim:n"]), r = args.wg[0];
  const auto row = static_cast<std::uint32_t>(args.buffer<const std::int32_t>(Operand::rows)[r]);
  float* y = args.buffer<float>(Operand::y) + std::uint64_t{r} * d;
  if (row < n) {
    std::copy_n(args.buffer<const float>(Operand::x) + std::uint64_t{row} * d, d, y);
  } else {
    std::fill_n(y, d, NAN);
  }
}

}  // namespace

extern const CpuKernel kCpuKernel_gather_rows;
const CpuKernel kCpuKernel_gather_rows{"GATHER_ROWS", run, kSymbols, {{"r"}, {}}};

}  // namespace zinc_rt::cpu
