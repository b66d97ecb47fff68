// This is the CPU reference kernel of the op EMBED. It computes y[t] = scale * table[id], converted to float, where id =
// ids[t]. A negative ids[t] names a word of the slot table, because the host does not know the token yet: then id =
// slots[slot[t]][-1 - ids[t]]. An id outside the table of rows yields a row of NaN, which the engine reports, and so
// does a word outside the slot table. Nothing outside the tables is read.
// Shapes: ids [n], table [v, d], y [n, d]; optional, both or none: slot [n], slots [s, fields] u32.
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
constexpr NameList kSymbols{"dim:v", "dim:d", "dtype:table", "dim:s", "dim:fields"};

// Returns the id of token t, or -1 if it names no word of the slot table.
std::int32_t id_of(const CpuArgs& args, std::uint32_t t) {
  const auto id = args.buffer<const std::int32_t>(Operand::ids)[t];
  const auto* slots = args.buffer<const std::int32_t>(Operand::slots);
  if (id >= 0 || slots == nullptr) return id;
  const std::uint32_t s = args.dim(kSymbols["dim:s"]), fields = args.dim(kSymbols["dim:fields"]);
  const auto slot = static_cast<std::uint32_t>(args.buffer<const std::int32_t>(Operand::slot)[t]);
  const auto field = static_cast<std::uint32_t>(-1 - id);
  return slot < s && field < fields ? slots[std::uint64_t{slot} * fields + field] : -1;
}

void run(const CpuArgs& args) {
  const std::uint32_t v = args.dim(kSymbols["dim:v"]), d = args.dim(kSymbols["dim:d"]), t = args.wg[0];
  const auto dtype = static_cast<DType>(args.symbols[kSymbols["dtype:table"]]);
  const auto id = id_of(args, t);
  float* y = args.buffer<float>(Operand::y) + std::uint64_t{t} * d;
  const float scale = args.constants<push::Embed>().scale;
  if (id < 0 || static_cast<std::uint32_t>(id) >= v) {
    for (std::uint32_t i = 0; i < d; ++i) y[i] = NAN;
    return;
  }
  const auto* table = args.buffer<const std::byte>(Operand::table);
  if (args.is_packed(Operand::table))
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
