// Reads the JSON text of a request's schema into a value that keeps the order of keys.
// Thread rule: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "grammar/limits.h"

namespace zinc_rt::grammar {

using Json = nlohmann::ordered_json;

// Parses the text. The time is proportional to its length, even for an object with very many keys. Errors:
// kInvalidArgument for broken JSON and for a key that occurs twice in an object; too complex above
// limits.max_source_bytes and max_depth.
Result<Json> read_json(std::string_view text, const Limits& limits);

// Returns the value of an object's key. Returns null if the object has no such key or the value is not an object.
inline const Json* find(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

}  // namespace zinc_rt::grammar
