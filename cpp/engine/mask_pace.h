// MaskPace measures how long a grammar's masks take to compute. The step loop uses it to decide whether a mask may be
// computed within a step.
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "grammar/grammar.h"

namespace zinc_rt {

// Tells whether a grammar's masks are quick to compute. All answers with the same grammar share one object, because
// their matchers lock the grammar's shared tables and so wait for each other.
class MaskPace {
 public:
  bool is_quick() const { return n_slow_.load(std::memory_order_relaxed) == 0; }
  // Records how long a mask took. After a mask that took longer than kLong, is_quick() is false for the next kWatched
  // masks.
  void note(std::chrono::nanoseconds took);

 private:
  static constexpr std::chrono::microseconds kLong{300};
  static constexpr std::uint32_t kWatched = 64;
  std::atomic<std::uint32_t> n_slow_{0};
};

// OutputGrammar is a compiled grammar together with the measured times of its masks. Requests with equal grammars share
// it.
struct OutputGrammar {
  grammar::Grammar grammar;
  std::shared_ptr<MaskPace> pace = std::make_shared<MaskPace>();
};

}  // namespace zinc_rt
