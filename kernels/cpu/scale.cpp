// SCALE: y = (x * w) * scale, w one stored number or absent. Shapes: x, y [n, d], w [1]. y may be x.
// Order: element by element.
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

void run(const CpuArgs& args) {
  const std::uint32_t width = args.dim(0);
  const std::uint64_t at = std::uint64_t{args.wg[0]} * width;
  const float scale = args.constants<push::Scale>().scale;
  const float *x = args.buffer<const float>(0) + at, *w = args.buffer<const float>(1);
  float* y = args.buffer<float>(2) + at;
  for (std::uint32_t i = 0; i < width; ++i) y[i] = (w != nullptr ? x[i] * w[0] : x[i]) * scale;
}

}  // namespace

extern const CpuKernel kCpuKernel_scale;
const CpuKernel kCpuKernel_scale{"SCALE", run, {"dim:d"}, {{"n"}, {}}};

}  // namespace zinc_rt::cpu
