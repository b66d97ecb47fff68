// What readers of patterns and of grammars in text share: a place in the text, and the parts that both notations have.
// Thread rule: one thread.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/limits.h"

namespace zinc_rt::grammar {

// How often a part may come; RegexArena::kUnbounded: as often as it likes.
struct Repeats {
  std::uint32_t min = 0, max = 0;
};

class SyntaxReader {
 protected:
  // `what`: a part is repeated of it, for errors. Both must outlive this.
  SyntaxReader(std::string_view text, std::string_view what, const Limits& limits)
      : text_(text), limits_(limits), what_(what) {}
  ~SyntaxReader() = default;

  // An error that names the place.
  virtual std::unexpected<Error> error(std::string_view what) const = 0;

  bool at_end() const { return pos_ == text_.size(); }
  bool at(std::string_view what) const { return text_.substr(pos_).starts_with(what); }
  bool take(std::string_view what) {
    if (!at(what)) return false;
    pos_ += what.size();
    return true;
  }

  // A decimal number; what is larger than UINT32_MAX is that. Nothing: no digit is here.
  std::optional<std::uint32_t> number();
  Result<char32_t> hex(std::size_t n_digits);
  Result<char32_t> code_point();  // of UTF-8

  // What { } may hold beside numbers and a comma.
  struct Braces {
    void (*skip)(SyntaxReader& reader) = nullptr;  // blanks between them
    bool may_lack_least = false;                   // {,n}
    std::string_view no_number;                    // the error where a number is wanted
  };
  // *, +, ?, {n}, {m,}, {m,n}. Nothing: here is none.
  Result<std::optional<Repeats>> quantifier(const Braces& braces);

  std::string_view text_;
  const Limits& limits_;
  std::size_t pos_ = 0;

 private:
  Result<Repeats> counts(const Braces& braces);

  std::string_view what_;
};

}  // namespace zinc_rt::grammar
