// Compiles a source and follows its masks for some tokens, chosen by the source's own bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "grammar/grammar.h"

namespace zinc_rt::grammar {

inline void require(bool holds) {
  if (!holds) __builtin_trap();
}

inline const std::shared_ptr<const Vocabulary>& fuzz_vocabulary() {
  static const std::shared_ptr<const Vocabulary> made = [] {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    for (const char* more :
         {"{\"", "\":", "\",\"", "}", "[1", "aa", "ab", "12", "  ", "true", "\\n", "\xC3\xA9", "\"}"})
      tokens.emplace_back(more);
    tokens.emplace_back();
    return Vocabulary::make(tokens, {static_cast<std::int32_t>(tokens.size()) - 1}).value();
  }();
  return made;
}

inline void try_grammar(SourceKind kind, const std::uint8_t* data, std::size_t size) {
  Options options;
  // Small limits are reached by small inputs.
  options.limits.max_regex_nodes = 20'000;
  options.limits.compile_work = 100'000;
  options.limits.step_work = 50'000;
  options.limits.max_lexer_bytes = 4u << 20;
  const auto made = compile({kind, std::string(reinterpret_cast<const char*>(data), size), {}}, options);
  if (!made) {
    require(!made.error().message.empty());
    return;
  }
  Matcher matcher(*made, fuzz_vocabulary());
  std::vector<std::uint32_t> mask(fuzz_vocabulary()->n_mask_words());
  for (std::size_t step = 0; step < 24; ++step) {
    if (!matcher.fill(mask)) return;
    std::vector<std::int32_t> allowed;
    for (std::int32_t id = 0; fuzz_vocabulary()->contains(id); ++id)
      if ((mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1) != 0) allowed.push_back(id);
    if (allowed.empty()) return;  // only tokens that this vocabulary lacks
    const std::int32_t id = allowed[(size == 0 ? 0 : data[step % size] * 31u + step) % allowed.size()];
    require(fuzz_vocabulary()->is_end(id) == false || matcher.is_complete());
    const auto fits = matcher.accept(id);
    if (!fits) return;
    require(*fits);
    if (matcher.is_ended()) return;
  }
}

}  // namespace zinc_rt::grammar
