// JSON that others wrote, to a value that keeps the order of keys. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <expected>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace zinc_rt {

struct JsonFault {
  enum class Kind : std::uint8_t {
    kSyntax,  // it is no JSON, no UTF-8, or has a number beyond all floats
    kValue,   // it is JSON that has a number out of range, or a key twice in one object
    kDepth,
  };
  Kind kind = Kind::kSyntax;
  std::string what;      // kSyntax: the library's words; kDepth: empty
  std::size_t byte = 0;  // kSyntax: where
};

// The value that the whole text is, nested at most max_depth deep. Takes time in proportion to the text, however many
// keys an object has.
std::expected<nlohmann::ordered_json, JsonFault> read_strict_json(std::string_view text, std::size_t max_depth);

}  // namespace zinc_rt
