#include "base/platform/address_wait.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace zinc_rt {

static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);

void sleep_while(std::atomic<std::uint32_t>& value, std::uint32_t old) {
  syscall(SYS_futex, &value, FUTEX_WAIT_PRIVATE, old, nullptr, nullptr, 0);
}

void wake(std::atomic<std::uint32_t>& value, int n) {
  syscall(SYS_futex, &value, FUTEX_WAKE_PRIVATE, n, nullptr, nullptr, 0);
}

}  // namespace zinc_rt
