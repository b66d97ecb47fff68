// StopMatcher finds stop strings in text that arrives in pieces. It holds back text that may become a stop string. The
// cost per byte depends neither on the length of the strings nor on how often their beginnings occur.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zinc_rt {

class StopMatcher {
 public:
  // `include`: a found stop string stays part of the text. If several stop strings begin at the same position, the
  // shortest counts.
  explicit StopMatcher(std::vector<std::string> stops, bool include = false);
  // Returns the text that cannot belong to a stop string; with `include` also the found stop string. After a stop
  // string was found, stopped() is true and push() returns no more text.
  std::string push(const std::string& text);
  std::string finish();  // returns the text that was held back if no stop string was found
  bool stopped() const { return stopped_; }
  const std::string& found() const { return found_; }  // the stop string that was found

 private:
  struct Stop {
    std::string text;
    // borders[n]: the length of the longest proper prefix of the first n bytes that is also their suffix.
    std::vector<std::uint32_t> borders;
    std::size_t n_matched = 0;  // how many bytes of the stop string's beginning the text so far ends with
  };
  // Advances the match through `text`. Returns the end of the stop string's first occurrence in it, or npos.
  static std::size_t find(Stop& stop, const std::string& text);

  std::vector<Stop> stops_;
  bool include_;
  // held_ from given_ on is the text that is held back. The text before given_ was returned. It is erased in large
  // parts and not byte by byte.
  std::string held_;
  std::size_t given_ = 0;
  bool stopped_ = false;
  std::string found_;
};

}  // namespace zinc_rt
