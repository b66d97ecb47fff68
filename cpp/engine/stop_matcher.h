// Finds stop strings in text that comes in pieces, and holds back what may become one.
// Thread rule: one thread.
#pragma once

#include <string>
#include <vector>

namespace zinc_rt {

class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops);
  // The text that is sure to stand before any stop string. Once one was found, stopped() holds and nothing more comes.
  std::string push(const std::string& text);
  std::string finish();  // what was held back, when no stop string came
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace zinc_rt
