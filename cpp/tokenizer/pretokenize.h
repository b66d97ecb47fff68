// Splits text into the pieces within which byte-level BPE merges, by the regular expressions of one PreRule (PCRE2).
// Thread rule: immutable once made; each call of split has its own scratch memory.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/pre_rules.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

// Receives each piece, in order, until it returns false. The pieces cover the text without gaps.
class PieceSink {
 public:
  virtual bool piece(std::string_view text) = 0;

 protected:
  ~PieceSink() = default;
};

class Pretokenizer {
 public:
  // Uses JIT code if the machine allows it. Errors: kInternal if a pattern does not compile.
  static Result<Pretokenizer> create(const PreRule& rule);

  Pretokenizer(Pretokenizer&&) noexcept;
  Pretokenizer& operator=(Pretokenizer&&) noexcept;
  ~Pretokenizer();

  bool uses_jit() const;

  // Each run of bytes that is not UTF-8 is a piece; the text on either side is split as if it stood alone. Returns
  // false if the sink did. Errors: kInternal if the regex engine runs out of memory or steps; the sink has then had
  // only a part of the text.
  Result<bool> split(std::string_view text, PieceSink& sink) const;

 private:
  struct Pattern;
  struct Scratch;
  Pretokenizer();
  Result<bool> split_valid(std::string_view text, std::size_t level, Scratch& scratch, PieceSink& sink) const;

  std::vector<Pattern> patterns_;
};

}  // namespace zinc_rt
