// Stop strings in text that comes in any pieces, against a plain search of what came so far.
#include "engine/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests_cpp/base/random_text.h"

namespace zinc_rt {
namespace {

// What push() says of itself, word for word; looks at all that is held for every piece.
struct PlainWay {
  std::vector<std::string> stops;
  bool include;
  std::string held;
  bool stopped = false;

  std::string push(const std::string& text) {
    if (stopped) return {};
    held += text;
    std::size_t at = std::string::npos, n = 0, hold = 0;
    for (const auto& stop : stops) {
      const auto here = held.find(stop);
      if (here < at || (here == at && here != std::string::npos && stop.size() < n)) at = here, n = stop.size();
    }
    stopped = at != std::string::npos;
    if (stopped) return held.substr(0, at + (include ? n : 0));
    for (const auto& stop : stops)
      for (std::size_t k = 1; k < stop.size() && k <= held.size(); ++k)
        if (held.ends_with(stop.substr(0, k))) hold = std::max(hold, k);
    const auto sure = held.substr(0, held.size() - hold);
    held.erase(0, sure.size());
    return sure;
  }
};

TEST(StopMatcher, AsThePlainWay) {
  RandomText random(31);
  const auto letters = [&](std::uint32_t n) {
    std::string text;
    for (; n > 0; --n) text += static_cast<char>('a' + random.below(2));
    return text;
  };
  for (int i = 0; i < 3000; ++i) {
    PlainWay plain{{}, random.below(2) == 0, {}};
    for (std::uint32_t n = random.below(5); n > 0; --n) plain.stops.push_back(letters(1 + random.below(9)));
    StopMatcher matcher(plain.stops, plain.include);
    for (int pieces = 0; pieces < 12; ++pieces) {
      const auto piece = letters(random.below(6));
      ASSERT_EQ(matcher.push(piece), plain.push(piece)) << "case " << i;
      ASSERT_EQ(matcher.stopped(), plain.stopped) << "case " << i;
    }
    const auto rest = matcher.finish();
    ASSERT_EQ(rest, plain.stopped ? "" : plain.held) << "case " << i;
  }
}

// Sixteen strings that match half and fail, in text that begins each at every byte. A search that looks at all that is
// held for each piece compares 10^13 bytes here, and runs into the test's own time limit.
TEST(StopMatcher, LongStopStringsThatNearlyMatch) {
  constexpr std::size_t kHalf = 100'000;
  StopMatcher matcher(std::vector<std::string>(16, std::string(kHalf, 'a') + 'b' + std::string(kHalf, 'a')));
  std::size_t n = 0;
  for (std::size_t i = 0; i < 2 * kHalf; ++i) n += matcher.push("a").size();
  EXPECT_EQ(n, kHalf);
  n += matcher.push("b").size() + matcher.push(std::string(kHalf, 'a')).size();
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(n, kHalf);
}

}  // namespace
}  // namespace zinc_rt
