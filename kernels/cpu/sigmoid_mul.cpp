// SIGMOID_MUL: y = x * sigmoid(gate). Shapes: [n, d]. y may be x.
// Order: element by element.
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

void run(const CpuArgs& args) {
  const std::uint32_t width = args.dim(0);
  const std::uint64_t at = std::uint64_t{args.wg[0]} * width;
  const float *x = args.buffer<const float>(0) + at, *gate = args.buffer<const float>(1) + at;
  float* y = args.buffer<float>(2) + at;
  for (std::uint32_t i = 0; i < width; ++i) y[i] = x[i] * exact::sigmoid(gate[i]);
}

}  // namespace

extern const CpuKernel kCpuKernel_sigmoid_mul;
const CpuKernel kCpuKernel_sigmoid_mul{"SIGMOID_MUL", run, {"dim:d"}, {{"n"}, {}}};

}  // namespace zinc_rt::cpu
