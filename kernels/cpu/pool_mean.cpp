// This is the CPU reference kernel of the op POOL_MEAN. It computes y[t], the mean of a text's rows up to token t, so
// the last token's mean is the mean of the whole text. The state keeps the sum of the rows so far, so a text may arrive
// in any chunks.
//   sum[slot[t]] = x[t] at position 0, else sum[slot[t]] + x[t];  y[t] = sum[slot[t]] / (pos[t] + 1)
// Tokens of one slot are in order of their positions. A workgroup computes a tile of columns for all tokens.
// Shapes: x [n, d], pos, slot [n], sum [s, d], y [n, d].
// Order of sums: row by row in ascending position, one add per row (rule 8).
#include <algorithm>

#include "base/multiversion.h"
#include "base/name_list.h"
#include "kernels/common/exact_math.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::PoolMean;
constexpr NameList kSymbols{"dim:n", "dim:d"};

constexpr std::uint32_t kTile = 256;

ZRT_MULTIVERSION void add_row(const float* x, std::uint32_t n, bool is_first, float count, float* sum, float* y) {
  for (std::uint32_t i = 0; i < n; ++i) {
    sum[i] = is_first ? x[i] : sum[i] + x[i];
    y[i] = exact::div(sum[i], count);
  }
}

void run(const CpuArgs& args) {
  const std::uint32_t n = args.dim(kSymbols["dim:n"]), d = args.dim(kSymbols["dim:d"]);
  const std::uint32_t begin = args.wg[0] * kTile, end = std::min(d, begin + kTile);
  const auto *pos = args.buffer<const std::int32_t>(Operand::pos),
             *slot = args.buffer<const std::int32_t>(Operand::slot);
  for (std::uint32_t t = 0; t < n; ++t) {
    const std::uint64_t row = std::uint64_t{t} * d + begin;
    add_row(args.buffer<const float>(Operand::x) + row, end - begin, pos[t] == 0, static_cast<float>(pos[t] + 1),
            args.buffer<float>(Operand::sum) + static_cast<std::uint64_t>(slot[t]) * d + begin,
            args.buffer<float>(Operand::y) + row);
  }
}

}  // namespace

extern const CpuKernel kCpuKernel_pool_mean;
const CpuKernel kCpuKernel_pool_mean{"POOL_MEAN", run, kSymbols, {{"d", kTile}, {}}};

}  // namespace zinc_rt::cpu
