#include "tokenizer/pair_set.h"

namespace zinc_rt {

void PairSet::add(char32_t left, char32_t right) {
  left = compact(left);
  right = compact(right);
  if ((left | right) < 0x80) {
    ascii_[left << 7 | right] = true;
  } else {
    others_.insert(static_cast<std::uint64_t>(left) << 32 | right);
  }
}

void PairSet::add_all(std::string_view text) {
  bool has_last = false;
  char32_t last = 0;
  while (!text.empty()) {
    const std::size_t n = utf8_sequence_bytes(text.substr(0, 4));
    const char32_t c = n == 0 ? 0 : utf8_code_point(text.substr(0, n));
    if (has_last && n > 0) add(last, c);
    has_last = n > 0;
    last = c;
    text.remove_prefix(n == 0 ? 1 : n);
  }
}

}  // namespace zinc_rt
