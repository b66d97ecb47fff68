// Parses JSON from outside into a value that keeps the order of keys and the text of numbers (json_number.h).
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <expected>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace zinc_rt {

struct JsonFault {
  enum class Kind : std::uint8_t {
    kSyntax,  // it is no JSON, no UTF-8, or has a number beyond all floats of the widest type
    kValue,   // it is JSON that has a key twice in one object
    kDepth,
  };
  Kind kind = Kind::kSyntax;
  std::string what;      // kSyntax: the library's words; kDepth: empty
  std::size_t byte = 0;  // kSyntax: where
};

// Parses the whole text as one value, nested at most max_depth deep. The time is proportional to the text, even for an
// object with very many keys.
std::expected<nlohmann::ordered_json, JsonFault> read_strict_json(std::string_view text, std::size_t max_depth);

// Parses JSON of any depth, in which a key may also stand twice (the last one counts). Returns nothing if the text is
// not JSON.
std::optional<nlohmann::ordered_json> read_any_json(std::string_view text);

}  // namespace zinc_rt
