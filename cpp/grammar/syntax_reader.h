// SyntaxReader is the base of the readers of regular expressions and GBNF grammars: a position in the text, and the
// syntax that both have in common.
// Thread rule: one thread.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/limits.h"

namespace zinc_rt::grammar {

// Says how often a part may be repeated. RegexArena::kUnbounded means without limit.
struct Repeats {
  std::uint32_t min = 0, max = 0;
};

class SyntaxReader {
 protected:
  // `what` is what the text is called in errors, such as a pattern. `text`, `what` and `limits` must outlive this
  // object.
  SyntaxReader(std::string_view text, std::string_view what, const Limits& limits)
      : text_(text), limits_(limits), what_(what) {}
  ~SyntaxReader() = default;

  // Returns an error that names the current position.
  virtual std::unexpected<Error> error(std::string_view what) const = 0;

  bool at_end() const { return pos_ == text_.size(); }
  bool at(std::string_view what) const { return text_.substr(pos_).starts_with(what); }
  bool take(std::string_view what) {
    if (!at(what)) return false;
    pos_ += what.size();
    return true;
  }

  // Reads a decimal number. Numbers above UINT32_MAX become UINT32_MAX. Returns nullopt if no digit is here.
  std::optional<std::uint32_t> number();
  Result<char32_t> hex(std::size_t n_digits);
  Result<char32_t> code_point();  // reads one character of UTF-8

  // Braces says what the two languages allow within { } besides numbers and a comma.
  struct Braces {
    void (*skip)(SyntaxReader& reader) = nullptr;  // skips blanks, if they are allowed
    bool may_lack_least = false;                   // whether {,n} is allowed
    std::string_view no_number;                    // error message if a number is missing
  };
  // Reads *, +, ?, {n}, {m,} or {m,n}. Returns nullopt if there is no quantifier here.
  Result<std::optional<Repeats>> quantifier(const Braces& braces);

  std::string_view text_;
  const Limits& limits_;
  std::size_t pos_ = 0;

 private:
  Result<Repeats> counts(const Braces& braces);

  std::string_view what_;
};

}  // namespace zinc_rt::grammar
