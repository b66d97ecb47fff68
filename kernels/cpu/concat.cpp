// This is the CPU reference kernel of the op CONCAT, which puts the parts of two rows side by side in each group:
// y[t][g] = a[t][g], then b[t][g]. It is the inverse of two SLICEs.
// Shapes: a [n, groups * first], b [n, groups * (width - first)], y [n, groups * width].
// Order of sums: there are none.
#include <algorithm>

#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::Concat;

void run(const CpuArgs& args) {
  const auto& c = args.constants<push::Concat>();
  const std::uint64_t row = std::uint64_t{args.wg[0]} * c.groups;
  const std::uint32_t rest = c.width - c.first;
  const float *a = args.buffer<const float>(Operand::a) + row * c.first,
              *b = args.buffer<const float>(Operand::b) + row * rest;
  float* y = args.buffer<float>(Operand::y) + row * c.width;
  for (std::uint32_t g = 0; g < c.groups; ++g, a += c.first, b += rest, y += c.width) {
    std::copy_n(a, c.first, y);
    std::copy_n(b, rest, y + c.first);
  }
}

}  // namespace

extern const CpuKernel kCpuKernel_concat;
const CpuKernel kCpuKernel_concat{"CONCAT", run, {}, {{"n"}, {}}};

}  // namespace zinc_rt::cpu
