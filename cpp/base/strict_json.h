// Parses JSON from outside, such as a client's, into a value that keeps the order of keys and the text of numbers
// (json_number.h).
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
    kSyntax,  // the text is not JSON or not UTF-8, or a number overflows a long double
    kValue,   // an object has the same key twice
    kDepth,
  };
  Kind kind = Kind::kSyntax;
  std::string what;      // the JSON library's message if kind is kSyntax; empty if kDepth
  std::size_t byte = 0;  // position of the fault in the text, if kind is kSyntax
};

// Parses the whole text as one value with at most max_depth nested arrays and objects. The time is proportional to the
// text's length, even for an object with very many keys.
std::expected<nlohmann::ordered_json, JsonFault> read_strict_json(std::string_view text, std::size_t max_depth);

// Parses JSON of any depth. If a key repeats in an object, its last value counts. Returns nullopt if the text is not
// JSON.
std::optional<nlohmann::ordered_json> read_any_json(std::string_view text);

}  // namespace zinc_rt
