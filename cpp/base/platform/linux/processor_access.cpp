#include "base/platform/processor_access.h"

#include <sched.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/platform/posix/test_child.h"

namespace zinc_rt {

// The kernel refuses a mask that is shorter than its own. So masks of growing length are tried, up to a million
// processors.
std::vector<int> usable_processors() {
  std::vector<int> ids;
  for (int n = 1024; n <= 1 << 20; n *= 4) {
    cpu_set_t* mask = CPU_ALLOC(static_cast<std::size_t>(n));
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(n));
    const bool known = sched_getaffinity(0, bytes, mask) == 0;
    for (int id = 0; known && id < n; ++id)
      if (CPU_ISSET_S(static_cast<std::size_t>(id), bytes, mask)) ids.push_back(id);
    CPU_FREE(mask);
    if (known) break;
  }
  for (int id = 0; ids.empty() && id < std::max(1, static_cast<int>(std::thread::hardware_concurrency())); ++id)
    ids.push_back(id);
  return ids;
}

bool survives(bool (*test)()) {
  // The call is a fork whose child sends no SIGCHLD when it ends, because a program that uses this library might handle
  // that signal.
  const auto child = static_cast<pid_t>(syscall(SYS_clone, 0, nullptr, nullptr, nullptr, nullptr));
  if (child < 0) return false;
  if (child == 0) end_by_test(test);
  return has_passed(child, __WCLONE);
}

bool allow_tile_registers() {
#if defined(__x86_64__)
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM; the bit of tile data in XCR0
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

bool has_arm_dot_products() {
#if defined(__aarch64__)
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
  return false;
#endif
}

bool has_arm_int8_matrices() {
#if defined(__aarch64__)
  return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
#else
  return false;
#endif
}

}  // namespace zinc_rt
