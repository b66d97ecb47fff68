// MOE_GATE_UP: for each of a token's k chosen experts gate = LINEAR(x, gate_w[id]), up = LINEAR(x, up_w[id]).
// Shapes: x [n, d], gate_w, up_w [e, f, d], ids [n, k], gate, up [n, k * f]. An id outside [0, e) gives NaN. Order: as
// LINEAR.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

void run(const CpuArgs& args) {
  const std::uint32_t d = args.dim(0), e = args.dim(1), f = args.dim(2), k = args.dim(3), t = args.wg[0],
                      j = args.wg[1];
  const auto x_dtype = static_cast<DType>(args.symbols[6]);
  const auto id = static_cast<std::uint32_t>(args.buffer<const std::int32_t>(3)[t * k + j]);
  for (std::uint32_t part = 0; part < 2; ++part) {
    const auto w_dtype = static_cast<DType>(args.symbols[4 + part]);
    float* y = args.buffer<float>(4 + part) + (std::uint64_t{t} * k + j) * f;
    if (id >= e) {
      std::fill_n(y, f, NAN);
      continue;
    }
    linear_rows({args.buffer<const std::byte>(1 + part) + std::uint64_t{id} * f * row_bytes(w_dtype, d), w_dtype,
                 nullptr, args.buffer<const std::byte>(0) + t * row_bytes(x_dtype, d), x_dtype, 0, d, 1, y, f,
                 reinterpret_cast<float*>(args.lds)},
                0, f);
  }
}

}  // namespace

extern const CpuKernel kCpuKernel_moe_gate_up;
const CpuKernel kCpuKernel_moe_gate_up{"MOE_GATE_UP",
                                       run,
                                       {"dim:d", "dim:e", "dim:f", "dim:k", "dtype:gate_w", "dtype:up_w", "dtype:x"},
                                       {{"n"}, {"k"}},
                                       KeyTypes::kWeights,
                                       [](const std::uint32_t* s) { return std::uint64_t{s[0]} * 4; }};

}  // namespace zinc_rt::cpu
