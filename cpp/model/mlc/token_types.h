// Defines constants that the importer and the exporter of tokenizers share.
#pragma once

#include <cstdint>
#include <string_view>

namespace zinc_rt::mlc {

// U+2581 replaces the space in vocabularies of the Metaspace kind.
inline constexpr std::string_view kSpaceMark = "\u2581";

// TokenType lists the values of GGUF's tokenizer.ggml.token_type, one per token.
enum TokenType : std::int64_t {
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

}  // namespace zinc_rt::mlc
