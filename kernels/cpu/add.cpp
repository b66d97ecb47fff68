// ADD: z = x + y. Shapes: [n, d]. z may be x.
// Order: element by element.
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

void run(const CpuArgs& args) {
  const std::uint32_t width = args.dim(0);
  const std::uint64_t at = std::uint64_t{args.wg[0]} * width;
  const float *x = args.buffer<const float>(0) + at, *y = args.buffer<const float>(1) + at;
  float* z = args.buffer<float>(2) + at;
  for (std::uint32_t i = 0; i < width; ++i) z[i] = x[i] + y[i];
}

}  // namespace

extern const CpuKernel kCpuKernel_add;
const CpuKernel kCpuKernel_add{"ADD", run, {"dim:d"}, {{"n"}, {}}};

}  // namespace zinc_rt::cpu
