// Finds stop strings in text that comes in pieces, and holds back what may become one.
// Thread rule: one thread.
#pragma once

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
  std::vector<std::string> stops_;
  bool include_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace zinc_rt
