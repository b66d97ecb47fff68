// STATE_COPY: state[to[i]] = state[from[i]] for each pair: recurrent state of a slot into a checkpoint, or back; a KV
// page onto another. Shapes: from, to [n], state [s, w], updated in place. No entry that is written may be named twice.
// Bits are moved, not values: the words of a page may be f16 pairs or quantized blocks. Order: none.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

constexpr std::uint32_t kTile = 1 << 16;

void run(const CpuArgs& args) {
  const std::uint64_t w = args.dim(0), begin = std::uint64_t{args.wg[1]} * kTile;
  const auto from = static_cast<std::uint64_t>(args.buffer<const std::int32_t>(0)[args.wg[0]]);
  const auto to = static_cast<std::uint64_t>(args.buffer<const std::int32_t>(1)[args.wg[0]]);
  float* state = args.buffer<float>(2);
  std::memcpy(state + to * w + begin, state + from * w + begin,
              std::min<std::uint64_t>(kTile, w - begin) * sizeof(float));
}

}  // namespace

extern const CpuKernel kCpuKernel_state_copy;
const CpuKernel kCpuKernel_state_copy{"STATE_COPY", run, {"dim:w"}, {{"n"}, {"w", kTile}}};

}  // namespace zinc_rt::cpu
