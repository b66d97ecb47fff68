// MOE_LINEAR: y[t][j] = LINEAR(x[t][rows == 1 ? 0 : j], w[ids[t][j]]) for the k experts that a token has chosen.
// Shapes: x [n, rows * d], w [e, f, d], ids [n, k], y [n, k * f]. An id outside [0, e) gives NaN.
// Order: as LINEAR; tokens, choices and outputs are independent. A workgroup owns a tile of one expert's rows for all
// tokens, so that each expert's weights are read once a step.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {

void moe_linear_tile(const MoeLinearArgs& args, std::uint32_t expert, std::uint32_t begin, std::uint32_t end) {
  const std::uint64_t x_row = row_bytes(args.x_dtype, args.d), w_row = row_bytes(args.w_dtype, args.d);
  for (std::uint32_t i = 0; i < args.n * args.k; ++i) {
    const auto id = static_cast<std::uint32_t>(args.ids[i]);
    float* y = args.y + std::uint64_t{i} * args.f + begin;
    if (id >= args.e) {
      if (expert == 0) std::fill_n(y, end - begin, NAN);
    } else if (id == expert) {
      const std::uint64_t row = args.rows == 1 ? i / args.k : i;
      linear_rows({static_cast<const std::byte*>(args.w) + expert * args.w_pitch + begin * w_row, args.w_dtype, nullptr,
                   static_cast<const std::byte*>(args.x) + row * x_row, args.x_dtype, x_row, args.d, 1, y, args.f,
                   args.scratch},
                  0, end - begin);
    }
  }
}

namespace {

constexpr std::uint32_t kTile = 64;

void run(const CpuArgs& args) {
  const std::uint32_t f = args.dim(3);
  const MoeLinearArgs linear{args.buffers[1],
                             static_cast<DType>(args.symbols[5]),
                             args.symbols[7],
                             args.buffers[0],
                             static_cast<DType>(args.symbols[6]),
                             args.constants<push::MoeLinear>().rows,
                             args.buffer<const std::int32_t>(2),
                             args.dim(0),
                             args.dim(4),
                             args.dim(2),
                             f,
                             args.dim(1),
                             args.buffer<float>(3),
                             reinterpret_cast<float*>(args.lds)};
  moe_linear_tile(linear, args.wg[0], args.wg[1] * kTile, std::min(f, (args.wg[1] + 1) * kTile));
}

}  // namespace

extern const CpuKernel kCpuKernel_moe_linear;
const CpuKernel kCpuKernel_moe_linear{"MOE_LINEAR",
                                      run,
                                      {"dim:n", "dim:d", "dim:e", "dim:f", "dim:k", "dtype:w", "dtype:x", "pitch:w"},
                                      {{"e"}, {"f", kTile}},
                                      KeyTypes::kWeights,
                                      [](const std::uint32_t* s) { return std::uint64_t{s[1]} * 4; }};

}  // namespace zinc_rt::cpu
