// Sleeps until another thread changes a number. Thread pools wait this way because it needs no lock.
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace zinc_rt {

// Sleeps until woken. Returns at once when `value` is not `old`, and may return without a reason.
void sleep_while(std::atomic<std::uint32_t>& value, std::uint32_t old);
// Wakes up to n threads that sleep on `value`.
void wake(std::atomic<std::uint32_t>& value, int n);

}  // namespace zinc_rt
