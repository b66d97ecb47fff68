// LOAD_REQUEST_STATE: value[r] = slots[slot[r]][field], a word of the slot table. Shapes: slots [s, fields] u32, slot,
// value [n]. A slot or field outside the table gives 0xFFFFFFFF. Order: none.
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

void run(const CpuArgs& args) {
  const std::uint32_t s = args.dim(0), fields = args.dim(1), r = args.wg[0],
                      field = args.constants<push::RequestState>().field;
  const auto slot = static_cast<std::uint32_t>(args.buffer<const std::int32_t>(1)[r]);
  const bool inside = slot < s && field < fields;
  args.buffer<std::uint32_t>(2)[r] =
      inside ? args.buffer<const std::uint32_t>(0)[std::uint64_t{slot} * fields + field] : 0xFFFFFFFFu;
}

}  // namespace

extern const CpuKernel kCpuKernel_load_request_state;
const CpuKernel kCpuKernel_load_request_state{"LOAD_REQUEST_STATE", run, {"dim:s", "dim:fields"}, {{"n"}, {}}};

}  // namespace zinc_rt::cpu
