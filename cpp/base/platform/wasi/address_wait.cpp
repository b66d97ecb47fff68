#include "base/platform/address_wait.h"

namespace zinc_rt {

// There is one thread. So nothing can wake a thread that sleeps, and the program would hang: it ends here instead.
void sleep_while(std::atomic<std::uint32_t>& value, std::uint32_t old) {
  if (value.load() == old) __builtin_trap();
}

void wake(std::atomic<std::uint32_t>&, int) {}

}  // namespace zinc_rt
