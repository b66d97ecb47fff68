// MOE_GATE_UP: for each of a token's k chosen experts gate = LINEAR(x, gate_w[id]), up = LINEAR(x, up_w[id]): two
// MOE_LINEARs. Shapes: x [n, d], gate_w, up_w [e, f, d], ids [n, k], gate, up [n, k * f]. An id outside [0, e) gives
// NaN. Order: as LINEAR.
#include <algorithm>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

void run(const CpuArgs& args) {
  const std::uint32_t f = args.dim(3);
  for (std::uint32_t part = 0; part < 2; ++part) {
    const MoeLinearArgs linear{args.buffers[1 + part],
                               static_cast<DType>(args.symbols[5 + part]),
                               args.is_packed(1 + part),
                               args.symbols[8 + part],
                               args.buffers[0],
                               static_cast<DType>(args.symbols[7]),
                               1,
                               args.buffer<const std::int32_t>(3),
                               args.dim(0),
                               args.dim(4),
                               args.dim(2),
                               f,
                               args.dim(1),
                               args.buffer<float>(4 + part),
                               args.lds,
                               args.set};
    moe_linear_tile(linear, args.wg[0], args.wg[1] * kMoeTile, std::min(f, (args.wg[1] + 1) * kMoeTile));
  }
}

}  // namespace

extern const CpuKernel kCpuKernel_moe_gate_up;
const CpuKernel kCpuKernel_moe_gate_up{"MOE_GATE_UP",
                                       run,
                                       {"dim:n", "dim:d", "dim:e", "dim:f", "dim:k", "dtype:gate_w", "dtype:up_w",
                                        "dtype:x", "pitch:gate_w", "pitch:up_w"},
                                       {{"e"}, {"f", kMoeTile}},
                                       KeyTypes::kWeights,
                                       [](const std::uint32_t* s) { return moe_linear_lds(s[1]); }};

}  // namespace zinc_rt::cpu
