// Finds stop strings in text that arrives in pieces, and holds back text that may become one. Each byte costs the same,
// however long the strings are and however often they begin. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zinc_rt {

class StopMatcher {
 public:
  // include: keep a found stop string as part of the text. Of several that begin at one position the shortest counts.
  explicit StopMatcher(std::vector<std::string> stops, bool include = false);
  // Returns the text that certainly precedes any stop string; with `include` also the stop string. Once a stop string
  // was found, stopped() is true and no more text is returned.
  std::string push(const std::string& text);
  std::string finish();  // the text that was held back, where no stop string came
  bool stopped() const { return stopped_; }
  const std::string& found() const { return found_; }  // the stop string that was found

 private:
  struct Stop {
    std::string text;
    // borders[n]: the length of the longest proper prefix of the first n bytes that is also their suffix.
    std::vector<std::uint32_t> borders;
    std::size_t n_matched = 0;  // bytes of it that the text so far ends with
  };
  // Advances through `text`. Returns the end of the first occurrence in it; npos if there is none.
  static std::size_t find(Stop& stop, const std::string& text);

  std::vector<Stop> stops_;
  bool include_;
  std::string held_;  // from given_ on; what was given before it goes now and then, not byte by byte
  std::size_t given_ = 0;
  bool stopped_ = false;
  std::string found_;
};

}  // namespace zinc_rt
