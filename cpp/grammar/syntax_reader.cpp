#include "grammar/syntax_reader.h"

#include <algorithm>

#include "base/utf8.h"
#include "grammar/regex_arena.h"

namespace zinc_rt::grammar {

std::optional<std::uint32_t> SyntaxReader::number() {
  std::uint64_t value = 0;
  const std::size_t begin = pos_;
  while (pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9' && value < UINT32_MAX)
    value = value * 10 + static_cast<std::uint64_t>(text_[pos_++] - '0');
  if (pos_ == begin) return std::nullopt;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, UINT32_MAX));
}

Result<char32_t> SyntaxReader::hex(std::size_t n_digits) {
  char32_t value = 0;
  for (std::size_t i = 0; i < n_digits; ++i, ++pos_) {
    const char c = pos_ < text_.size() ? text_[pos_] : '\0';
    const char lower = static_cast<char>(c | 0x20);
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && !(lower >= 'a' && lower <= 'f')) return error("a hexadecimal digit is wanted");
    value = value * 16 + static_cast<char32_t>(is_digit ? c - '0' : lower - 'a' + 10);
  }
  return value;
}

Result<char32_t> SyntaxReader::code_point() {
  const std::size_t n = utf8_sequence_bytes(text_.substr(pos_));
  if (n == 0) return error("bytes that are not UTF-8");
  const char32_t one = utf8_code_point(text_.substr(pos_, n));
  pos_ += n;
  return one;
}

Result<std::optional<Repeats>> SyntaxReader::quantifier(const Braces& braces) {
  if (take("*")) return Repeats{0, RegexArena::kUnbounded};
  if (take("+")) return Repeats{1, RegexArena::kUnbounded};
  if (take("?")) return Repeats{0, 1};
  if (!take("{")) return std::nullopt;
  return counts(braces);
}

Result<Repeats> SyntaxReader::counts(const Braces& braces) {
  const auto skip = [&] {
    if (braces.skip != nullptr) braces.skip(*this);
  };
  const auto wanted = [&](std::uint32_t& count) -> Status {
    const auto found = number();
    if (!found) return error(braces.no_number);
    count = *found;
    return {};
  };
  Repeats repeats;
  skip();
  if (!braces.may_lack_least || !at(",")) ZRT_CHECK_OK(wanted(repeats.min));
  repeats.max = repeats.min;
  skip();
  std::uint32_t most = repeats.min;
  if (take(",")) {
    skip();
    repeats.max = RegexArena::kUnbounded;
    if (!at("}")) {
      ZRT_CHECK_OK(wanted(repeats.max));
      most = std::max(most, repeats.max);
    }
  }
  skip();
  if (!take("}")) return error("a } is wanted");
  if (most > limits_.max_repeat) return too_complex(fmt::format("repeats of a {}", what_), most, limits_.max_repeat);
  if (repeats.max < repeats.min) return error("{m,n} with n below m");
  return repeats;
}

}  // namespace zinc_rt::grammar
