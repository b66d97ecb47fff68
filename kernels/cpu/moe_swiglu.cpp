// MOE_SWIGLU: y = act(gate) * up for the k chosen experts of each token, act as in GLU. Shapes: [n, k * f]. y may be
// gate. Order: element by element.
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

void run(const CpuArgs& args) {
  const std::uint32_t width = args.dim(0);
  const std::uint64_t at = std::uint64_t{args.wg[0]} * width;
  glu_row(args.constants<push::MoeSwiglu>().act, args.buffer<const float>(0) + at, args.buffer<const float>(1) + at,
          args.buffer<float>(2) + at, width, args.set);
}

}  // namespace

extern const CpuKernel kCpuKernel_moe_swiglu;
const CpuKernel kCpuKernel_moe_swiglu{"MOE_SWIGLU", run, {"dim:f"}, {{"n"}, {}}};

}  // namespace zinc_rt::cpu
