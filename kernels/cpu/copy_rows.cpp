// This is the CPU reference kernel of the op COPY_ROWS. It sets rows[to[i]] = rows[from[i]] for each pair i. A row is
// the recurrent state of a slot or of a checkpoint, or a whole KV page. The row to[i] of a pair may occur in no other
// pair. Bits are copied, not values, because the words of a page may be f16 pairs or quantized blocks.
// Order of sums: there are none.
#include <algorithm>
#include <cstring>

#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::CopyRows;
constexpr NameList kSymbols{"dim:w"};

constexpr std::uint32_t kTile = 1 << 16;

void run(const CpuArgs& args) {
  const std::uint64_t w = args.dim(kSymbols["dim:w"]), begin = std::uint64_t{args.wg[1]} * kTile;
  const auto from = static_cast<std::uint64_t>(args.buffer<const std::int32_t>(Operand::from)[args.wg[0]]);
  const auto to = static_cast<std::uint64_t>(args.buffer<const std::int32_t>(Operand::to)[args.wg[0]]);
  float* rows = args.buffer<float>(Operand::rows);
  std::memcpy(rows + to * w + begin, rows + from * w + begin,
              std::min<std::uint64_t>(kTile, w - begin) * sizeof(float));
}

}  // namespace

extern const CpuKernel kCpuKernel_copy_rows;
const CpuKernel kCpuKernel_copy_rows{"COPY_ROWS", run, kSymbols, {{"n"}, {"w", kTile}}};

}  // namespace zinc_rt::cpu
