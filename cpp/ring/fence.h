// A point in a ring's work. Fences of one ring retire in the order of their numbers.
#pragma once

#include <cstdint>

namespace zinc_rt::ring {

struct Fence {
  std::uint64_t value = 0;  // 0: retired from the start
};

}  // namespace zinc_rt::ring
