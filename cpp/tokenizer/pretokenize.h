// Pretokenizer splits text into pieces by the regular expressions of one PreRule, with PCRE2. Byte-level BPE then
// merges within each piece.
// Thread rule: immutable after creation; each call of split has its own scratch memory.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/pre_rules.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

// Receives the pieces of a text in order. Splitting stops if piece() returns false. The pieces cover the text without
// gaps.
class PieceSink {
 public:
  virtual bool piece(std::string_view text) = 0;

 protected:
  ~PieceSink() = default;
};

class Pretokenizer {
 public:
  // Compiles the patterns, to JIT code if the machine allows it. Errors: kInternal if a pattern does not compile.
  static Result<Pretokenizer> create(const PreRule& rule);

  Pretokenizer(Pretokenizer&&) noexcept;
  Pretokenizer& operator=(Pretokenizer&&) noexcept;
  ~Pretokenizer();

  bool uses_jit() const;

  // Splits `text` and passes the pieces to `sink`. Each run of bytes that is not UTF-8 is a piece, and the text on
  // either side is split as if it stood alone. Returns false if the sink did. Errors: kInternal if the regex engine
  // runs out of memory or steps; the sink has then received only a part of the text.
  Result<bool> split(std::string_view text, PieceSink& sink) const;

 private:
  struct Pattern;
  struct Scratch;
  Pretokenizer();
  Result<bool> split_valid(std::string_view text, std::size_t level, Scratch& scratch, PieceSink& sink) const;

  std::vector<Pattern> patterns_;
};

}  // namespace zinc_rt
