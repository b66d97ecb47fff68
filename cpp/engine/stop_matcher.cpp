#include "engine/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace zinc_rt {

StopMatcher::StopMatcher(std::vector<std::string> stops, bool include) : stops_(std::move(stops)), include_(include) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
  std::ranges::sort(stops_, {}, &std::string::size);
}

std::string StopMatcher::push(const std::string& text) {
  if (stopped_) return {};
  held_ += text;
  std::size_t found = std::string::npos, found_bytes = 0;
  for (const auto& stop : stops_)
    if (const auto at = held_.find(stop); at < found) found = at, found_bytes = stop.size();
  if (found != std::string::npos) {
    stopped_ = true;
    auto sure = held_.substr(0, found + (include_ ? found_bytes : 0));
    held_.clear();
    return sure;
  }
  // Hold back the longest end of the text that begins some stop string.
  std::size_t hold = 0;
  for (const auto& stop : stops_)
    for (std::size_t n = std::min(stop.size() - 1, held_.size()); n > hold; --n)
      if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) hold = n;
  auto sure = held_.substr(0, held_.size() - hold);
  held_.erase(0, sure.size());
  return sure;
}

std::string StopMatcher::finish() {
  return std::exchange(held_, {});
}

}  // namespace zinc_rt
