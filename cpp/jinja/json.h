// Converts JSON documents to template values, and values to the text that Python's json.dumps writes (filter tojson).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "jinja/own_words.h"
#include "jinja/runtime.h"

namespace zinc_rt::jinja {

// Converts a JSON document to a value. All its texts, including keys, are marked as coming from outside, except own
// words. If `is_own` is true, no text is marked.
Result<Value> from_json(Runtime& rt, nlohmann::ordered_json& json, const OwnWords& words, bool is_own = false);

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // the indent of one level; if set, each item gets its own line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};
Result<MarkedText> to_json(Runtime& rt, const Value& value, const JsonStyle& style);

}  // namespace zinc_rt::jinja
