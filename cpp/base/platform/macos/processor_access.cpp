#include "base/platform/processor_access.h"

#include <unistd.h>

#include <algorithm>

#include "base/platform/macos/system_number.h"
#include "base/platform/posix/test_child.h"

namespace zinc_rt {
std::vector<int> usable_processors() {
  std::vector<int> ids;
  const auto n = static_cast<int>(std::max<std::uint64_t>(1, system_number("hw.logicalcpu")));
  for (int id = 0; id < n; ++id) ids.push_back(id);
  return ids;
}

bool survives(bool (*test)()) {
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) end_by_test(test);
  return has_passed(child, 0);
}

bool allow_tile_registers() {
  return false;
}

bool has_arm_dot_products() {
  return system_number("hw.optional.arm.FEAT_DotProd") != 0;
}

bool has_arm_int8_matrices() {
  return system_number("hw.optional.arm.FEAT_I8MM") != 0;
}

}  // namespace zinc_rt
