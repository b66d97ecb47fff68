#include "mem/spans.h"

#include <algorithm>
#include <array>

namespace zinc_rt::mem {

std::uint32_t n_shared(SpanView a, SpanView b) {
  const auto n = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
  const auto differs = std::mismatch(a.ids_.begin(), a.ids_.begin() + n, b.ids_.begin()).first;
  return static_cast<std::uint32_t>(differs - a.ids_.begin());
}

std::uint64_t SpanView::page_hash(SipKey key, std::uint32_t parent) const {
  std::array<std::uint32_t, kPageTokens + 1> words;
  words[0] = parent;
  std::ranges::copy(ids_, words.begin() + 1);
  return siphash(key, std::as_bytes(std::span(words).first(ids_.size() + 1)));
}

void PageSpans::assign(SpanView view) {
  std::ranges::copy(view.ids(), ids_);
  n_ = view.size();
}

}  // namespace zinc_rt::mem
