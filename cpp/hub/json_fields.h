// Reads fields of JSON that a site sent. A field that is absent or has another type reads as an empty text or 0.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace zinc_rt::hub {

template <class Json>
std::string text_at(const Json& json, const char* key) {
  if (!json.is_object()) return {};
  const auto at = json.find(key);
  return at != json.end() && at->is_string() ? at->template get<std::string>() : std::string();
}

template <class Json>
std::uint64_t number_at(const Json& json, const char* key) {
  if (!json.is_object()) return 0;
  const auto at = json.find(key);
  return at != json.end() && at->is_number_unsigned() ? at->template get<std::uint64_t>() : 0;
}

}  // namespace zinc_rt::hub
