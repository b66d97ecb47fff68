#include "engine/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace zinc_rt {

StopMatcher::StopMatcher(std::vector<std::string> stops, bool include) : include_(include) {
  std::erase_if(stops, [](const std::string& stop) { return stop.empty(); });
  std::ranges::sort(stops, {}, &std::string::size);
  for (std::string& text : stops) {
    Stop stop{std::move(text), {0, 0}, 0};
    for (std::size_t n = 1; n < stop.text.size(); ++n) {
      std::uint32_t border = stop.borders[n];
      while (border > 0 && stop.text[border] != stop.text[n]) border = stop.borders[border];
      stop.borders.push_back(stop.text[border] == stop.text[n] ? border + 1 : 0);
    }
    stops_.push_back(std::move(stop));
  }
}

std::size_t StopMatcher::find(Stop& stop, const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    while (stop.n_matched > 0 && stop.text[stop.n_matched] != text[i]) stop.n_matched = stop.borders[stop.n_matched];
    if (stop.text[stop.n_matched] == text[i]) ++stop.n_matched;
    if (stop.n_matched == stop.text.size()) return i + 1;
  }
  return std::string::npos;
}

std::string StopMatcher::push(const std::string& text) {
  if (stopped_) return {};
  const std::size_t n_held = held_.size();
  held_ += text;
  std::size_t found = std::string::npos, found_bytes = 0;
  for (Stop& stop : stops_) {
    const std::size_t end = find(stop, text);
    if (end == std::string::npos) continue;
    if (const std::size_t at = n_held + end - stop.text.size(); at < found)
      found = at, found_bytes = stop.text.size(), found_ = stop.text;
  }
  if (found != std::string::npos) {
    stopped_ = true;
    auto sure = held_.substr(given_, found - given_ + (include_ ? found_bytes : 0));
    held_.clear();
    given_ = 0;
    return sure;
  }
  // The longest suffix of the text that begins some stop string is held back.
  std::size_t hold = 0;
  for (const Stop& stop : stops_) hold = std::max(hold, stop.n_matched);
  auto sure = held_.substr(given_, held_.size() - given_ - hold);
  given_ += sure.size();
  if (given_ > held_.size() / 2) held_.erase(0, std::exchange(given_, 0));
  return sure;
}

std::string StopMatcher::finish() {
  for (Stop& stop : stops_) stop.n_matched = 0;
  return std::exchange(held_, {}).substr(std::exchange(given_, 0));
}

}  // namespace zinc_rt
