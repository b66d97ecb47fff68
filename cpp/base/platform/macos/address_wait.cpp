#include "base/platform/address_wait.h"

#include <cstddef>

// macOS has them since 14.4 (<os/os_sync_wait_on_address.h>). They are declared here because cross compilers bring
// libSystem's symbols and not this header.
extern "C" {
int os_sync_wait_on_address(void* address, std::uint64_t value, std::size_t size, std::uint32_t flags);
int os_sync_wake_by_address_any(void* address, std::size_t size, std::uint32_t flags);
int os_sync_wake_by_address_all(void* address, std::size_t size, std::uint32_t flags);
}

namespace zinc_rt {

static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);

void sleep_while(std::atomic<std::uint32_t>& value, std::uint32_t old) {
  os_sync_wait_on_address(&value, old, sizeof value, 0);
}

// The system wakes one thread or all. A thread too many looks at the value and sleeps again.
void wake(std::atomic<std::uint32_t>& value, int n) {
  if (n == 1)
    os_sync_wake_by_address_any(&value, sizeof value, 0);
  else if (n > 1)
    os_sync_wake_by_address_all(&value, sizeof value, 0);
}

}  // namespace zinc_rt
