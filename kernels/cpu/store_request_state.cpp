// This is the CPU reference kernel of the op STORE_REQUEST_STATE. It sets slots[slot[r]][field] = value[r], a word of
// the slot table, in place. A slot or field outside the table is not written. If rows have the same slot, the value of
// the last of them stays.
// Shapes: slots [s, fields] u32, slot [n], value [n].
// Order of writes: rows ascending, by one workgroup.
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::StoreRequestState;
constexpr NameList kSymbols{"dim:s", "dim:fields", "dim:n"};

void run(const CpuArgs& args) {
  const std::uint32_t s = args.dim(kSymbols["dim:s"]), fields = args.dim(kSymbols["dim:fields"]),
                      n = args.dim(kSymbols["dim:n"]), field = args.constants<push::RequestState>().field;
  for (std::uint32_t r = 0; r < n; ++r) {
    const auto slot = static_cast<std::uint32_t>(args.buffer<const std::int32_t>(Operand::slot)[r]);
    if (slot < s && field < fields)
      args.buffer<std::uint32_t>(Operand::slots)[std::uint64_t{slot} * fields + field] =
          args.buffer<const std::uint32_t>(Operand::value)[r];
  }
}

}  // namespace

extern const CpuKernel kCpuKernel_store_request_state;
const CpuKernel kCpuKernel_store_request_state{"STORE_REQUEST_STATE", run, kSymbols, {{}, {}}};

}  // namespace zinc_rt::cpu
