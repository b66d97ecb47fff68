// A point in the work of a ring. A fence is retired once all work up to it is done; the fences of one ring retire in
// the order of their numbers.
#pragma once

#include <cstdint>

namespace zinc_rt::ring {

struct Fence {
  std::uint64_t value = 0;  // 0: retired from the start
};

}  // namespace zinc_rt::ring
