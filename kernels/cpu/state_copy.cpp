// STATE_COPY: state[to[i]] = state[from[i]] for each pair: the recurrent state of a slot into a checkpoint, or back; or
// a KV page onto another. No entry that is written may be named twice. Bits are moved, not values: the words of a page
// may be f16 pairs or quantized blocks.
// Shapes: from, to [n], state [s, w], updated in place.
// Order: none.
#include <algorithm>
#include <cstring>

#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::StateCopy;
constexpr NameList kSymbols{"dim:w"};

constexpr std::uint32_t kTile = 1 << 16;

void run(const CpuArgs& args) {
  const std::uint64_t w = args.dim(kSymbols["dim:w"]), begin = std::uint64_t{args.wg[1]} * kTile;
  const auto from = static_cast<std::uint64_t>(args.buffer<const std::int32_t>(Operand::from)[args.wg[0]]);
  const auto to = static_cast<std::uint64_t>(args.buffer<const std::int32_t>(Operand::to)[args.wg[0]]);
  float* state = args.buffer<float>(Operand::state);
  std::memcpy(state + to * w + begin, state + from * w + begin,
              std::min<std::uint64_t>(kTile, w - begin) * sizeof(float));
}

}  // namespace

extern const CpuKernel kCpuKernel_state_copy;
const CpuKernel kCpuKernel_state_copy{"STATE_COPY", run, kSymbols, {{"n"}, {"w", kTile}}};

}  // namespace zinc_rt::cpu
