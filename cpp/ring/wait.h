// Waits for a word that a device writes, such as a fence.
// Thread rule: plain functions.
#pragma once

#include <chrono>
#include <thread>

#include "base/error.h"

namespace zinc_rt::ring {

// Waits until is_done() returns true. Spins for a millisecond, then sleeps between looks. Every 20 ms it calls
// check(time waited so far), which returns an error if the device has failed. Such an error ends the wait and is
// returned. is_done() must read its word with acquire, so that the device's earlier writes are visible after the wait.
template <class IsDone, class Check>
Status wait_until(const IsDone& is_done, const Check& check) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kSpin = std::chrono::milliseconds(1), kAsk = std::chrono::milliseconds(20);
  const auto begin = Clock::now();
  auto asked = begin;
  for (int spins = 0; !is_done(); ++spins) {
    if (spins % 64 != 63) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
      continue;
    }
    const auto now = Clock::now();
    if (now - begin > kSpin) std::this_thread::sleep_for(std::chrono::microseconds(20));
    if (now - asked < kAsk) continue;
    asked = now;
    ZRT_CHECK_OK(check(now - begin));
  }
  return {};
}

}  // namespace zinc_rt::ring
