// This is the CPU reference kernel of the op SLICE, which copies the columns [first, first + width) of each group of a
// row: y[t][g][i] = x[t][g][first + i].
// Shapes: x [n, groups * group], y [n, groups * width].
// Order of sums: there are none.
#include <algorithm>

#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::Slice;

void run(const CpuArgs& args) {
  const auto& c = args.constants<push::Slice>();
  const std::uint64_t t = args.wg[0];
  const float* x = args.buffer<const float>(Operand::x) + t * c.groups * c.group + c.first;
  float* y = args.buffer<float>(Operand::y) + t * c.groups * c.width;
  for (std::uint32_t g = 0; g < c.groups; ++g)
    std::copy_n(x + std::uint64_t{g} * c.group, c.width, y + std::uint64_t{g} * c.width);
}

}  // namespace

extern const CpuKernel kCpuKernel_slice;
const CpuKernel kCpuKernel_slice{"SLICE", run, {}, {{"n"}, {}}};

}  // namespace zinc_rt::cpu
