// JSON documents as template values and back, the latter as Python's json.dumps writes them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "jinja/runtime.h"

namespace zinc_rt::jinja {

Result<Value> from_json(Runtime& rt, nlohmann::ordered_json& json);

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // one level of it; set means one item a line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};
Result<std::string> to_json(Runtime& rt, const Value& value, const JsonStyle& style);

}  // namespace zinc_rt::jinja
