// A fence is a point in a ring's work; Ring::submit returns one. It retires once all work submitted before it is done.
// A ring's fences retire in the order of their numbers.
#pragma once

#include <cstdint>

namespace zinc_rt::ring {

struct Fence {
  std::uint64_t value = 0;  // 0: retired from the start
};

}  // namespace zinc_rt::ring
