// Says what the compiler does with each keyword of JSON Schema. To add a keyword, add a row here and a reader in one of
// schema_*.cpp.
// Thread rule: constant tables.
#pragma once

#include <cstdint>
#include <string_view>

namespace zinc_rt::grammar {

enum class KeywordUse : std::uint8_t {
  kEnforced,
  kRefused,     // the keyword constrains values, but this compiler does not enforce it
  kAnnotation,  // the keyword constrains nothing; the standard demands this for all unknown keywords
};

KeywordUse use_of(std::string_view keyword);

}  // namespace zinc_rt::grammar
