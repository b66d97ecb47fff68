// Finds stop strings in text that comes in pieces, and holds back what may become one. Each byte of text costs the
// same, however long the strings are and however often they begin. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zinc_rt {

class StopMatcher {
 public:
  // include: the stop string that was found belongs to the text; of several at one place the shortest.
  explicit StopMatcher(std::vector<std::string> stops, bool include = false);
  // The text that is sure to stand before any stop string, and with `include` the stop string. Once one was found,
  // stopped() holds and nothing more comes.
  std::string push(const std::string& text);
  std::string finish();  // what was held back, when no stop string came
  bool stopped() const { return stopped_; }

 private:
  struct Stop {
    std::string text;
    // borders[n]: of its first n bytes, the longest shorter beginning that they also end with.
    std::vector<std::uint32_t> borders;
    std::size_t n_matched = 0;  // bytes of it that the text so far ends with
  };
  // Goes on through `text`; where the first occurrence ends in it, npos for none.
  static std::size_t find(Stop& stop, const std::string& text);

  std::vector<Stop> stops_;
  bool include_;
  std::string held_;  // from given_ on; what was given before it goes now and then, not byte by byte
  std::size_t given_ = 0;
  bool stopped_ = false;
};

}  // namespace zinc_rt
