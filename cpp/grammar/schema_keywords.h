// The JSON Schema keywords that this engine knows. A new keyword is a row here plus a reader in one of schema_*.cpp.
// Thread rule: constant tables.
#pragma once

#include <cstdint>
#include <string_view>

namespace zinc_rt::grammar {

enum class KeywordUse : std::uint8_t {
  kEnforced,
  kRefused,     // it constrains, and that is not enforced
  kAnnotation,  // constrains nothing: all other names, as the standard says of those that it does not know
};

KeywordUse use_of(std::string_view keyword);

}  // namespace zinc_rt::grammar
