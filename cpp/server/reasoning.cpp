#include "server/reasoning.h"

#include <algorithm>

namespace zinc_rt::server {
namespace {

constexpr std::string_view kOpen = "<think>", kClose = "</think>", kSpaces = " \t\r\n";

// The length of the longest suffix of `text` that is a prefix of `tag`.
std::size_t overlap(std::string_view text, std::string_view tag) {
  for (std::size_t n = std::min(text.size(), tag.size() - 1); n > 0; --n)
    if (tag.starts_with(text.substr(text.size() - n))) return n;
  return 0;
}

}  // namespace

ReasoningSplitter::Parts ReasoningSplitter::push(std::string_view piece) {
  held_ += piece;
  Parts parts;
  if (state_ == kStart) {
    const auto first = held_.find_first_not_of(kSpaces);
    if (first == std::string::npos) return parts;
    const auto rest = std::string_view(held_).substr(first);
    if (rest.size() < kOpen.size() && kOpen.starts_with(rest)) return parts;
    if (rest.starts_with(kOpen)) {
      held_.erase(0, first + kOpen.size());
      state_ = kInside;
    } else {
      state_ = kAnswer;
    }
  }
  if (state_ == kInside) {
    const auto close = held_.find(kClose);
    const auto n = close == std::string::npos ? held_.size() - overlap(held_, kClose) : close;
    parts.reasoning = held_.substr(0, n);
    held_.erase(0, n);
    if (close == std::string::npos) return parts;
    held_.erase(0, kClose.size());
    state_ = kBehind;
  }
  if (state_ == kBehind) {
    held_.erase(0, std::min(held_.find_first_not_of(kSpaces), held_.size()));
    if (held_.empty()) return parts;
    state_ = kAnswer;
  }
  parts.answer.swap(held_);
  return parts;
}

ReasoningSplitter::Parts ReasoningSplitter::finish() {
  Parts parts;
  (state_ == kInside ? parts.reasoning : parts.answer).swap(held_);
  if (state_ == kBehind) parts.answer.clear();
  return parts;
}

bool leaves_reasoning_open(std::string_view text) {
  const auto open = text.rfind(kOpen), close = text.rfind(kClose);
  return open != std::string_view::npos && (close == std::string_view::npos || close < open);
}

ReasoningSplitter::Parts split_reasoning(std::string_view text, bool begins_inside) {
  ReasoningSplitter splitter(begins_inside);
  auto parts = splitter.push(text);
  const auto rest = splitter.finish();
  parts.reasoning += rest.reasoning;
  parts.answer += rest.answer;
  return parts;
}

}  // namespace zinc_rt::server
