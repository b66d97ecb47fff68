// Lets a thread sleep until another thread changes a number (Linux: futex). Thread pools wait this way because it needs
// no lock.
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace zinc_rt {

// Sleeps until wake() is called for `value`. Returns at once if `value` is not `old`. May also return without a wake().
void sleep_while(std::atomic<std::uint32_t>& value, std::uint32_t old);
// Wakes up to n threads that sleep on `value`.
void wake(std::atomic<std::uint32_t>& value, int n);

}  // namespace zinc_rt
