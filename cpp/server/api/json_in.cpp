#include "server/api/json_in.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/json_number.h"
#include "base/strict_json.h"

namespace zinc_rt::server {
namespace {

constexpr std::size_t kMaxDepth = 64;

// Rewords an error of the JSON library for clients. The library's text is, for example,
// "[json.exception.parse_error.101] parse error at line 1, column 2: ...", or "[json.exception.out_of_range.406] number
// overflow parsing '1e999'".
std::string complaint_of(const JsonFault& fault) {
  if (fault.kind == JsonFault::Kind::kDepth) return fmt::format("nested deeper than {}", kMaxDepth);
  if (fault.kind == JsonFault::Kind::kValue) return fault.what;
  std::string what = fault.what;
  if (const auto bracket = what.find("] "); bracket != std::string::npos) what.erase(0, bracket + 2);
  if (const auto colon = what.find(": "); what.starts_with("parse error") && colon != std::string::npos)
    what.erase(0, colon + 2);
  if (constexpr std::string_view kOverflow = "number overflow parsing '"; what.starts_with(kOverflow)) {
    what.pop_back();
    what = fmt::format("the number {} is out of range", what.substr(kOverflow.size(), 40));
  }
  std::string plain;  // because the message may quote bytes that are not UTF-8
  for (const char c : what.substr(0, 200))
    if (static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7F) plain += c;
  return fmt::format("byte {}: {}", fault.byte, plain);
}

}  // namespace

ApiResult<Json> parse_json(std::string_view text) {
  auto value = read_strict_json(text, kMaxDepth);
  if (value) return std::move(*value);
  auto error = make_error(400, "[json] " + complaint_of(value.error()));
  error.code = "invalid_json";
  return std::unexpected(std::move(error));
}

std::uint64_t bytes_as_parsed(std::string_view text) {
  // How many bytes a parsed value takes per list element (including the unused capacity of a growing list), per object
  // member, per list or object, and per string.
  constexpr std::uint64_t kOfEntry = 32, kOfMember = 96, kOfContainer = 64, kOfString = 64;
  std::uint64_t bytes = 3 * text.size();
  bool is_in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        is_in_string = false;
      continue;
    }
    switch (c) {
      case '"':
        is_in_string = true;
        bytes += kOfString;
        break;
      case ',': bytes += kOfEntry; break;
      case ':': bytes += kOfMember; break;
      case '[':
      case '{': bytes += kOfContainer; break;
      default: break;
    }
  }
  return bytes;
}

ApiResult<Json> parse_object(std::string_view text) {
  auto body = parse_json(text);
  if (!body || body->is_object()) return body;
  return std::unexpected(make_error(400, fmt::format("[request] {} is given, an object wanted", show(*body))));
}

ApiResult<Json> read_object(const HttpRequest& request) {
  return parse_object(request.body);
}

ApiResult<void> expect_no_fields(const HttpRequest& request) {
  if (request.body.empty()) return {};
  const auto body = read_object(request);
  if (!body) return std::unexpected(body.error());
  return Fields(*body).expect_no_others();
}

std::optional<std::int64_t> whole_number(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return std::in_range<std::int64_t>(number) ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!is_json_number(value)) return std::nullopt;
  const double number = number_value(value);
  if (!(std::abs(number) <= 0x1p53) || number != std::trunc(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::optional<std::vector<std::int32_t>> ids_of(const Json& list) {
  std::vector<std::int32_t> ids;
  ids.reserve(list.size());
  for (const Json& id : list) {
    const auto number = whole_number(id);
    if (!number || *number < 0 || *number > INT32_MAX) return std::nullopt;
    ids.push_back(static_cast<std::int32_t>(*number));
  }
  return ids;
}

std::string as_text(const Json& value) {
  return dump_json(value);
}

std::string show(const Json& value) {
  // Configuration files may have infinity and NaN, which JSON lacks.
  if (value.is_number_float() && !std::isfinite(value.get<double>())) return fmt::format("{}", value.get<double>());
  std::string text = dump_json(value, {.ensure_ascii = true});
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

std::unexpected<ApiError> Fields::wrong(const char* name, const std::string& what) const {
  return wrong_field(prefix_ + (*name == '\0' ? "\"\"" : name), what);
}

std::unexpected<ApiError> Fields::unlike(const char* name, const Json& value, const std::string& wanted) const {
  return wrong(name, fmt::format("{} is given, {} wanted", show(value), wanted));
}

const Json* Fields::get(const char* name) {
  known_.insert(name);
  const auto it = object_.find(name);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

ApiResult<std::optional<bool>> Fields::get_bool(const char* name) {
  const Json* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) return unlike(name, *value, "true or false");
  return value->get<bool>();
}

ApiResult<std::optional<double>> Fields::get_number(const char* name, double low, double high) {
  const Json* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (!is_json_number(*value)) return unlike(name, *value, "a number");
  const double number = number_value(*value);
  if (!(number >= low && number <= high)) return unlike(name, *value, fmt::format("{} to {}", low, high));
  return number;
}

ApiResult<std::optional<std::int64_t>> Fields::get_int(const char* name, std::int64_t low, std::int64_t high) {
  const Json* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (!is_json_number(*value)) return unlike(name, *value, "a whole number");
  const auto number = whole_number(*value);
  if (!number && number_value(*value) != std::trunc(number_value(*value)))
    return unlike(name, *value, "a whole number");
  if (!number || *number < low || *number > high) return unlike(name, *value, fmt::format("{} to {}", low, high));
  return number;
}

ApiResult<std::optional<std::string>> Fields::get_string(const char* name, std::size_t max_bytes) {
  const Json* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) return unlike(name, *value, "a string");
  const auto& text = value->get_ref<const std::string&>();
  if (text.size() > max_bytes)
    return wrong(name, fmt::format("{} bytes are given, at most {} allowed", text.size(), max_bytes));
  return text;
}

ApiResult<std::optional<std::string>> Fields::get_choice(const char* name, const std::vector<std::string>& values) {
  const Json* value = get(name);
  if (value == nullptr) return std::nullopt;
  std::string all;
  for (const auto& one : values) {
    if (value->is_string() && value->get_ref<const std::string&>() == one) return one;
    all += (all.empty() ? "" : ", ") + one;
  }
  return unlike(name, *value, "one of " + all);
}

ApiResult<std::optional<std::vector<std::int32_t>>> Fields::get_ids(const char* name, std::size_t max_ids,
                                                                    const std::string& what) {
  const Json* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) return unlike(name, *value, "a list of " + what);
  if (value->size() > max_ids)
    return wrong(name, fmt::format("{} entries, at most {} allowed", value->size(), max_ids));
  std::vector<std::int32_t> ids;
  for (const Json& id : *value) {
    const auto number = whole_number(id);
    if (!number || *number < 0 || *number > INT32_MAX) return unlike(name, id, what);
    ids.push_back(static_cast<std::int32_t>(*number));
  }
  return ids;
}

ApiResult<void> Fields::expect_no_others(std::vector<std::string>* ignored) const {
  for (const auto& [name, value] : object_.items()) {
    if (known_.contains(name) || value.is_null()) continue;
    if (ignored == nullptr)
      return wrong(name.substr(0, 80).c_str(),
                   "this server knows no such field (one started with --tolerant passes over it)");
    if (ignored->size() >= kMostIgnored) return {};
    auto whole = prefix_ + name.substr(0, 80);
    if (std::ranges::find(*ignored, whole) == ignored->end()) ignored->push_back(std::move(whole));
  }
  return {};
}

}  // namespace zinc_rt::server
