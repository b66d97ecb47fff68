// Constants that the tokenizer importer and exporter share.
#pragma once

#include <cstdint>
#include <string_view>

namespace zinc_rt::mlc {

inline constexpr std::string_view kSpaceMark = "\u2581";  // stands for a space in metaspace vocabularies

// The values of GGUF's tokenizer.ggml.token_type.
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
