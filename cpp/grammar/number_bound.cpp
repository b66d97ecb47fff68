// Makes regexes for numbers above or below a bound, digit by digit. A number is a sign, a whole part without leading
// zeros, and optionally a point and digits. It has no exponent. Each digit either decides that the number is above or
// below the bound, or equals the bound's digit and leaves the comparison to the next digit.
#include <string>

#include "grammar/json_lexemes.h"

namespace zinc_rt::grammar {
namespace {

constexpr auto kAny = RegexArena::kUnbounded;

class Bound {
 public:
  // `magnitude` is the bound without its sign, in plain digits.
  Bound(RegexArena& arena, std::string_view magnitude, bool is_exclusive) : arena_(arena), is_exclusive_(is_exclusive) {
    const auto point = magnitude.find('.');
    whole_ = magnitude.substr(0, point);
    if (point != std::string_view::npos) fraction_ = magnitude.substr(point + 1);
  }

  Regex at_least() {
    return arena_.any_of(
        {arena_.concat(whole(true), any_fraction()), arena_.concat(arena_.literal(whole_), fraction_above())});
  }
  Regex at_most() {
    return arena_.any_of(
        {arena_.concat(whole(false), any_fraction()), arena_.concat(arena_.literal(whole_), fraction_below())});
  }
  Regex anything() { return arena_.concat(any_whole(), any_fraction()); }
  bool is_zero() const { return whole_ == "0" && fraction_.empty(); }

 private:
  Regex digits(char first, char last) {
    if (first > last) return RegexArena::kNothing;
    return arena_.bytes(ByteSet::range(static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(last)));
  }
  Regex more_digits(std::size_t min, std::uint32_t max) {
    return arena_.repeat(digits('0', '9'), static_cast<std::uint32_t>(min), max);
  }
  Regex any_whole() {
    return arena_.any_of({arena_.literal("0"), arena_.concat(digits('1', '9'), more_digits(0, kAny))});
  }
  Regex any_fraction() { return arena_.optional(arena_.concat(arena_.literal("."), more_digits(1, kAny))); }

  // Returns a regex for the whole parts that are above (or below) the whole part of the bound.
  Regex whole(bool is_above) {
    const auto n = static_cast<std::uint32_t>(whole_.size());
    Regex same_length = RegexArena::kNothing;
    for (std::size_t i = n; i-- > 0;) {
      const auto n_left = static_cast<std::uint32_t>(n - i - 1);
      const char low = i == 0 && n > 1 ? '1' : '0';
      const Regex decided =
          is_above ? digits(static_cast<char>(whole_[i] + 1), '9') : digits(low, static_cast<char>(whole_[i] - 1));
      same_length = arena_.any_of({arena_.concat(decided, more_digits(n_left, n_left)),
                                   arena_.concat(arena_.literal(whole_.substr(i, 1)), same_length)});
    }
    if (is_above) return arena_.any_of({same_length, arena_.concat(digits('1', '9'), more_digits(n, kAny))});
    if (n == 1) return same_length;
    return arena_.any_of({same_length, arena_.literal("0"), arena_.concat(digits('1', '9'), more_digits(0, n - 2))});
  }

  // Returns a regex for the fractions that are at least the bound's fraction. A fraction includes its point, or is
  // empty.
  Regex fraction_above() {
    const Regex not_zero = arena_.concat({more_digits(0, kAny), digits('1', '9'), more_digits(0, kAny)});
    if (fraction_.empty()) return is_exclusive_ ? arena_.concat(arena_.literal("."), not_zero) : any_fraction();
    Regex made = is_exclusive_ ? not_zero : more_digits(0, kAny);
    for (std::size_t i = fraction_.size(); i-- > 0;)
      made = arena_.any_of({arena_.concat(digits(static_cast<char>(fraction_[i] + 1), '9'), more_digits(0, kAny)),
                            arena_.concat(arena_.literal(fraction_.substr(i, 1)), made)});
    return arena_.concat(arena_.literal("."), made);
  }
  Regex fraction_below() {
    const Regex zeros = arena_.repeat(arena_.literal("0"), 0, kAny);
    if (fraction_.empty()) {
      if (is_exclusive_) return RegexArena::kNothing;
      return arena_.optional(arena_.concat({arena_.literal(".0"), zeros}));
    }
    Regex made = is_exclusive_ ? RegexArena::kNothing : zeros;
    for (std::size_t i = fraction_.size(); i-- > 0;) {
      made = arena_.any_of({arena_.concat(digits('0', static_cast<char>(fraction_[i] - 1)), more_digits(0, kAny)),
                            arena_.concat(arena_.literal(fraction_.substr(i, 1)), made)});
      if (i > 0) made = arena_.optional(made);  // a fraction that ends here is less than the bound's
    }
    return arena_.optional(arena_.concat(arena_.literal("."), made));
  }

  RegexArena& arena_;
  const bool is_exclusive_;
  std::string whole_, fraction_;
};

}  // namespace

Regex number_bound(RegexArena& arena, std::string_view bound, bool is_upper, bool is_exclusive) {
  const bool is_negative = bound.starts_with('-');
  Bound magnitude(arena, is_negative ? bound.substr(1) : bound, is_exclusive);
  const Regex minus = arena.literal("-");
  if (!is_upper) {
    if (!is_negative) return magnitude.at_least();
    return arena.any_of({magnitude.anything(), arena.concat(minus, magnitude.at_most())});
  }
  if (is_negative) return arena.concat(minus, magnitude.at_least());
  // "-0" is not below zero, so it must not match.
  if (magnitude.is_zero() && is_exclusive) return arena.concat(minus, magnitude.at_least());
  return arena.any_of({magnitude.at_most(), arena.concat(minus, magnitude.anything())});
}

}  // namespace zinc_rt::grammar
