// This is the CPU reference kernel of the op ROPE, which rotates pairs of the first n_rot values of each head by the
// angle of the token's position. The other values are copied.
//   neox = 1: pairs (i, i + n_rot/2)
//   neox = 0: pairs (2i, 2i + 1)
//   (a, b) -> (a c - b s, a s + b c)
// A position outside the table yields NaN.
// Shapes: x [n, d], pos [n], table [p, n_rot], which is n_rot/2 pairs (cos, sin) for each position, computed on the
//   host in double; y [n, d].
// Order of sums: a*c rounded, then fma(-b, s, a*c); a*s rounded, then fma(b, c, a*s).
#include <cmath>

#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {

void rope_row(const float* x, const float* table_row, float* y, std::uint32_t d, std::uint32_t head_dim,
              std::uint32_t n_rot, bool neox, const KernelSet* set) {
  if (set != nullptr && set->rows != nullptr) return set->rows->rope(x, table_row, y, d, head_dim, n_rot, neox);
  const std::uint32_t half = n_rot / 2;
  for (std::uint32_t h = 0; h < d; h += head_dim) {
    for (std::uint32_t i = 0; i < half; ++i) {
      const std::uint32_t first = h + (neox ? i : 2 * i), second = h + (neox ? i + half : 2 * i + 1);
      const float a = x[first], b = x[second], c = table_row[2 * i], s = table_row[2 * i + 1];
      y[first] = __builtin_fmaf(-b, s, a * c);
      y[second] = __builtin_fmaf(b, c, a * s);
    }
    for (std::uint32_t i = n_rot; i < head_dim; ++i) y[h + i] = x[h + i];
  }
}

namespace {

using Operand = operand::Rope;
constexpr NameList kSymbols{"dim:d", "dim:p"};

void run(const CpuArgs& args) {
  const auto& c = args.constants<push::Rope>();
  const std::uint32_t d = args.dim(kSymbols["dim:d"]), rows = args.dim(kSymbols["dim:p"]), t = args.wg[0];
  const auto pos = args.buffer<const std::int32_t>(Operand::pos)[t];
  float* y = args.buffer<float>(Operand::y) + std::uint64_t{t} * d;
  if (pos < 0 || static_cast<std::uint32_t>(pos) >= rows) {
    for (std::uint32_t i = 0; i < d; ++i) y[i] = NAN;
    return;
  }
  rope_row(args.buffer<const float>(Operand::x) + std::uint64_t{t} * d,
           args.buffer<const float>(Operand::table) + static_cast<std::uint64_t>(pos) * c.n_rot, y, d, c.head_dim,
           c.n_rot, c.neox != 0, args.set);
}

}  // namespace

extern const CpuKernel kCpuKernel_rope;
const CpuKernel kCpuKernel_rope{"ROPE", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu
