// This is the CPU reference kernel of the op MOE_LINEAR. It computes y[t][j] = LINEAR(x[t][rows == 1 ? 0 : j],
// w[ids[t][j]]) for the k experts that token t has chosen. An id outside [0, e) yields NaN. A workgroup computes a tile
// of one expert's rows for all tokens, so that each expert's weights are read once per step.
// Shapes: x [n, rows * d], w [e, f, d], ids [n, k], y [n, k * f].
// Order of sums: as in LINEAR. Tokens, choices and outputs are independent of each other.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {

namespace {

using Operand = operand::MoeLinear;
constexpr NameList kSymbols{"dim:n", "dim:d", "dim:e", "dim:f", "dim:k", "dtype:w", "dtype:x", "pitch:w"};

constexpr std::uint32_t kGather = 32;  // the most choices of one expert (rows of x) that are computed together

// Returns the size in bytes of an activation row of the type that takes the most (f32), rounded up to 64.
std::uint64_t widest_row(std::uint32_t d) {
  return (std::uint64_t{d} * 4 + 63) / 64 * 64;
}

}  // namespace

std::uint64_t moe_linear_lds(std::uint32_t d) {
  return kGather * (widest_row(d) + kMoeTile * 4) + std::uint64_t{d} * 4;
}

void moe_linear_tile(const MoeLinearArgs& args, std::uint32_t expert, std::uint32_t begin, std::uint32_t end) {
  const std::uint64_t x_row = row_bytes(args.x_dtype, args.d), pitch = widest_row(args.d);
  std::byte* x = args.scratch;
  auto* y = reinterpret_cast<float*>(x + kGather * pitch);
  float* linear_scratch = y + kGather * kMoeTile;
  const auto out = [&](std::uint32_t choice) { return args.y + std::uint64_t{choice} * args.f + begin; };
  std::uint32_t choices[kGather], n = 0;
  const auto compute = [&] {
    linear_rows({static_cast<const std::byte*>(args.w) + expert * args.w_pitch, args.w_dtype, args.packed, args.f,
                 nullptr, x, args.x_dtype, pitch, args.d, n, y_before(y, begin), kMoeTile, linear_scratch, args.set},
                begin, end);
    for (std::uint32_t i = 0; i < n; ++i) std::copy_n(y + i * kMoeTile, end - begin, out(choices[i]));
    n = 0;
  };
  for (std::uint32_t i = 0; i < args.n * args.k; ++i) {
    const auto id = static_cast<std::uint32_t>(args.ids[i]);
    if (id >= args.e && expert == 0) std::fill_n(out(i), end - begin, NAN);
    if (id != expert || id >= args.e) continue;
    const std::uint64_t row = args.rows == 1 ? i / args.k : i;
    std::memcpy(x + n * pitch, static_cast<const std::byte*>(args.x) + row * x_row, x_row);
    choices[n++] = i;
    if (n == kGather) compute();
  }
  if (n > 0) compute();
}

namespace {

void run(const CpuArgs& args) {
  const std::uint32_t f = args.dim(kSymbols["dim:f"]);
  const MoeLinearArgs linear{args.buffers[Operand::w],
                             static_cast<DType>(args.symbols[kSymbols["dtype:w"]]),
                             args.is_packed(Operand::w),
                             args.symbols[kSymbols["pitch:w"]],
                             args.buffers[Operand::x],
                             static_cast<DType>(args.symbols[kSymbols["dtype:x"]]),
                             args.constants<push::MoeLinear>().rows,
                             args.buffer<const std::int32_t>(Operand::ids),
                             args.dim(kSymbols["dim:n"]),
                             args.dim(kSymbols["dim:k"]),
                             args.dim(kSymbols["dim:e"]),
                             f,
                             args.dim(kSymbols["dim:d"]),
                             args.buffer<float>(Operand::y),
                             args.lds,
                             args.set};
  moe_linear_tile(linear, args.wg[0], args.wg[1] * kMoeTile, std::min(f, (args.wg[1] + 1) * kMoeTile));
}

}  // namespace

extern const CpuKernel kCpuKernel_moe_linear;
const CpuKernel kCpuKernel_moe_linear{
    "MOE_LINEAR",       run,
    kSymbols,           {{"e"}, {"f", kMoeTile}},
    KeyTypes::kWeights, [](const std::uint32_t* s) { return moe_linear_lds(s[kSymbols["dim:d"]]); }};

}  // namespace zinc_rt::cpu
