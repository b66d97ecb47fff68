#include "base/platform/processor_access.h"

namespace zinc_rt {

std::vector<int> usable_processors() {
  return {0};
}

// There are no child processes, so nothing can be tried out.
bool survives(bool (*)()) {
  return false;
}

bool allow_tile_registers() {
  return false;
}

bool has_arm_dot_products() {
  return false;
}

bool has_arm_int8_matrices() {
  return false;
}

}  // namespace zinc_rt
