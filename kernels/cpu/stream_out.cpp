// This is the CPU reference kernel of the op STREAM_OUT, which appends (sequence number, slot, token, row) for each
// output row to the host's ring. Entry 0 of the ring is the number of entries written so far, and the i-th of them is
// at 1 + i mod (entries - 1). The host reads up to the count. The engine sizes the ring so that one step cannot
// overwrite what the host has not read.
// Shapes: token, slot [n], ring [entries, 4] u32, updated in place.
// Order of writes: rows ascending, by one workgroup.
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::StreamOut;
constexpr NameList kSymbols{"dim:n", "dim:entries"};

void run(const CpuArgs& args) {
  const std::uint32_t n = args.dim(kSymbols["dim:n"]), entries = args.dim(kSymbols["dim:entries"]);
  auto* ring = args.buffer<std::uint32_t>(Operand::ring);
  std::uint32_t count = ring[0];
  for (std::uint32_t r = 0; r < n; ++r, ++count) {
    std::uint32_t* entry = ring + 4 * (1 + count % (entries - 1));
    entry[0] = count;
    entry[1] = static_cast<std::uint32_t>(args.buffer<const std::int32_t>(Operand::slot)[r]);
    entry[2] = static_cast<std::uint32_t>(args.buffer<const std::int32_t>(Operand::token)[r]);
    entry[3] = r;
  }
  ring[0] = count;
}

}  // namespace

extern const CpuKernel kCpuKernel_stream_out;
const CpuKernel kCpuKernel_stream_out{"STREAM_OUT", run, kSymbols, {{}, {}}};

}  // namespace zinc_rt::cpu
