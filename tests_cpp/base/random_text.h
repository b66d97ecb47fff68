// Random text for the tokenizer's property tests: the same for the same seed.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace zinc_rt {

class RandomText {
 public:
  explicit RandomText(std::uint32_t seed) : engine_(seed) {}

  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(engine_()) % n; }

  // Words, digits, spaces, line ends, control characters, marks, CJK, emoji with joiners, and any other code point.
  std::string utf8(std::size_t n_parts) {
    std::string out;
    for (std::size_t i = 0; i < n_parts; ++i) part(out);
    return out;
  }

  // The same with bytes in between that are not UTF-8.
  std::string bytes(std::size_t n_parts) {
    std::string out;
    for (std::size_t i = 0; i < n_parts; ++i) {
      if (below(3) != 0) {
        part(out);
      } else {
        out.push_back(static_cast<char>(below(256)));
      }
    }
    return out;
  }

 private:
  char32_t between(char32_t low, char32_t high) { return low + below(high - low + 1); }

  void part(std::string& out) {
    static constexpr std::string_view kPieces[] = {" ",
                                                   "  ",
                                                   "\n",
                                                   "\r\n",
                                                   "\t",
                                                   "'s",
                                                   "'LL",
                                                   "don't",
                                                   "Hello",
                                                   " the",
                                                   "ing",
                                                   "1234",
                                                   "3.14",
                                                   "...",
                                                   "\u0301",
                                                   "</",
                                                   "[]",
                                                   "_x",
                                                   "\U0001F468\u200D\U0001F469\u200D\U0001F467"};
    switch (below(10)) {
      case 0: return append_utf8(out, between(0, 0x7F));
      case 1: return append_utf8(out, between(0x80, 0x24F));
      case 2: return append_utf8(out, between(0x300, 0x36F));
      case 3: return append_utf8(out, between(0x4E00, 0x9FFF));
      case 4: return append_utf8(out, between(0x1F300, 0x1FAFF));
      case 5: {
        const char32_t any = between(0, 0x10FFFF);
        return append_utf8(out, any >= 0xD800 && any < 0xE000 ? U'\uFFFD' : any);
      }
      case 6:
        for (std::uint32_t n = 1 + below(8); n > 0; --n) out.push_back(static_cast<char>('a' + below(26)));
        return;
      default: out += kPieces[below(std::size(kPieces))];
    }
  }

  std::mt19937 engine_;
};

}  // namespace zinc_rt
