// Splits text into the pieces within which byte-level BPE merges: the regular expressions of one PreRule, by PCRE2.
// Thread rule: immutable once made; each call of split has its own scratch memory.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/pre_rules.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

// What a splitter calls for each piece, in order, until it returns false; the pieces cover the text without gaps.
class PieceSink {
 public:
  virtual bool piece(std::string_view text) = 0;

 protected:
  ~PieceSink() = default;
};

class Pretokenizer {
 public:
  // Fails with kInternal when a pattern does not compile. Matches by JIT code where the machine allows it.
  static Result<Pretokenizer> create(const PreRule& rule);

  Pretokenizer(Pretokenizer&&) noexcept;
  Pretokenizer& operator=(Pretokenizer&&) noexcept;
  ~Pretokenizer();

  bool uses_jit() const;

  // Each run of bytes that is not UTF-8 is one piece of its own; the text beside it is split as if it stood alone.
  // False: the sink ended it. Fails with kInternal when the regex engine runs out of memory or steps; the sink has then
  // seen only a part.
  Result<bool> split(std::string_view text, PieceSink& sink) const;

 private:
  struct Pattern;
  struct Scratch;
  Pretokenizer();
  Result<bool> split_valid(std::string_view text, std::size_t level, Scratch& scratch, PieceSink& sink) const;

  std::vector<Pattern> patterns_;
};

}  // namespace zinc_rt
