// This is the CPU reference kernel of the op LOAD_REQUEST_STATE. It sets value[r] = slots[slot[r]][field], a word of
// the slot table. A slot or field outside the table yields 0xFFFFFFFF.
// Shapes: slots [s, fields] u32, slot [n], value [n].
// Order of sums: there are none.
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::LoadRequestState;
constexpr NameList kSymbols{"dim:s", "dim:fields"};

void run(const CpuArgs& args) {
  const std::uint32_t s = args.dim(kSymbols["dim:s"]), fields = args.dim(kSymbols["dim:fields"]), r = args.wg[0],
                      field = args.constants<push::RequestState>().field;
  const auto slot = static_cast<std::uint32_t>(args.buffer<const std::int32_t>(Operand::slot)[r]);
  const bool inside = slot < s && field < fields;
  args.buffer<std::uint32_t>(Operand::value)[r] =
      inside ? args.buffer<const std::uint32_t>(Operand::slots)[std::uint64_t{slot} * fields + field] : 0xFFFFFFFFu;
}

}  // namespace

extern const CpuKernel kCpuKernel_load_request_state;
const CpuKernel kCpuKernel_load_request_state{"LOAD_REQUEST_STATE", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu
