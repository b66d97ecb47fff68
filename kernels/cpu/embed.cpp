// This is the CPU reference kernel of the op EMBED. It computes y[t] = scale * table[ids[t]], converted to float. An id
// outside the table yields a row of NaN, which the engine reports. Nothing outside the table is read.
// Shapes: ids [n], table [v, d], y [n, d].
// Order of sums: there are none.
#include <cmath>

#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/panels.h"
#include "kernels/cpu/quant/quant.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::Embed;
constexpr NameList kSymbols{"dim:v", "dim:d", "dtype:table"};

void run(const CpuArgs& args) {
  const std::uint32_t v = args.dim(kSymbols["dim:v"]), d = args.dim(kSymbols["dim:d"]), t = args.wg[0];
  const auto dtype = static_cast<DType>(args.symbols[kSymbols["dtype:table"]]);
  const auto id = args.buffer<const std::int32_t>(Operand::ids)[t];
  float* y = args.buffer<float>(Operand::y) + std::uint64_t{t} * d;
  const float scale = args.constants<push::Embed>().scale;
  if (id < 0 || static_cast<std::uint32_t>(id) >= v) {
    for (std::uint32_t i = 0; i < d; ++i) y[i] = NAN;
    return;
  }
  const auto* table = args.buffer<const std::byte>(Operand::table);
  if (args.is_packed(Operand::table) && has_panels(dtype))
    dequantize_packed_row(dtype, v, d, table, static_cast<std::uint32_t>(id), y);
  else
    quant_format(dtype)->dequantize_row(table + static_cast<std::uint64_t>(id) * row_bytes(dtype, d), y, d);
  if (scale != 1.0f)
    for (std::uint32_t i = 0; i < d; ++i) y[i] = y[i] * scale;
}

}  // namespace

extern const CpuKernel kCpuKernel_embed;
const CpuKernel kCpuKernel_embed{"EMBED", run, kSymbols, {{"n"}, {}}, KeyTypes::kWeights};

}  // namespace zinc_rt::cpu
