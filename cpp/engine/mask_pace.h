// A grammar shared by requests, and how long its masks take to make.
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "grammar/grammar.h"

namespace zinc_rt {

// Whether a grammar's masks are quick to make. All answers of a grammar share one pace, because some of their matchers
// wait for each other.
class MaskPace {
 public:
  bool is_quick() const { return n_slow_.load(std::memory_order_relaxed) == 0; }
  // Notes that a mask was made. A slow one makes the next kWatched masks count as slow.
  void note(std::chrono::nanoseconds took);

 private:
  static constexpr std::chrono::microseconds kLong{300};
  static constexpr std::uint32_t kWatched = 64;
  std::atomic<std::uint32_t> n_slow_{0};
};

// A grammar, shared by requests.
struct OutputGrammar {
  grammar::Grammar grammar;
  std::shared_ptr<MaskPace> pace = std::make_shared<MaskPace>();
};

}  // namespace zinc_rt
