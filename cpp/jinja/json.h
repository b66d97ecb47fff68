// Converts JSON documents to template values, and values to the text that Python's json.dumps writes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "jinja/own_words.h"
#include "jinja/runtime.h"

namespace zinc_rt::jinja {

// Marks all texts, including keys, as foreign, except the own words. With `is_own` no text is foreign.
Result<Value> from_json(Runtime& rt, nlohmann::ordered_json& json, const OwnWords& words, bool is_own = false);

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // the indent of one level; if set, each item gets a line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};
Result<MarkedText> to_json(Runtime& rt, const Value& value, const JsonStyle& style);

}  // namespace zinc_rt::jinja
