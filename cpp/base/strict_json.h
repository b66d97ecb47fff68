// JSON that others wrote, to a value that keeps the order of keys and the text of numbers (json_number.h).
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

// The value that the whole text is, nested at most max_depth deep. Takes time in proportion to the text, however many
// keys an object has.
std::expected<nlohmann::ordered_json, JsonFault> read_strict_json(std::string_view text, std::size_t max_depth);

// The same of JSON that may name a key twice, of which the last counts, and nests as deep as it likes. Nothing: it is no
// JSON.
std::optional<nlohmann::ordered_json> read_any_json(std::string_view text);

}  // namespace zinc_rt
