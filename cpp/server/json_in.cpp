#include "server/json_in.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace zinc_rt::server {
namespace {

constexpr int kMaxDepth = 64;

// Builds the value. Stops at the first thing that JSON allows and this reader does not.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  Json value;
  std::string complaint;

  bool null() override { return put(nullptr); }
  bool boolean(bool b) override { return put(b); }
  bool number_integer(number_integer_t n) override { return put(n); }
  bool number_unsigned(number_unsigned_t n) override { return put(n); }
  bool number_float(number_float_t n, const string_t& text) override {
    if (!std::isfinite(n)) return refuse(fmt::format("the number {} is out of range", text.substr(0, 40)));
    return put(n);
  }
  bool string(string_t& s) override { return put(std::move(s)); }
  bool binary(binary_t&) override { return refuse("binary data"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& k) override {
    key_ = std::move(k);
    if (!keys_.back().insert(key_).second)
      return refuse(fmt::format("the key \"{}\" is given twice in one object", key_.substr(0, 80)));
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ...", or "[json.exception.out_of_range.406]
    // number overflow parsing '1e999'".
    std::string what = error.what();
    if (const auto bracket = what.find("] "); bracket != std::string::npos) what.erase(0, bracket + 2);
    if (const auto colon = what.find(": "); what.starts_with("parse error") && colon != std::string::npos)
      what.erase(0, colon + 2);
    if (constexpr std::string_view kOverflow = "number overflow parsing '"; what.starts_with(kOverflow)) {
      what.pop_back();
      what = fmt::format("the number {} is out of range", what.substr(kOverflow.size(), 40));
    }
    std::string plain;  // the message may quote bytes that are no UTF-8
    for (const char c : what.substr(0, 200))
      if (static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7F) plain += c;
    complaint = fmt::format("byte {}: {}", at, plain);
    return false;
  }

 private:
  bool refuse(std::string what) {
    complaint = std::move(what);
    return false;
  }
  template <class T>
  bool put(T&& item) {
    place(std::forward<T>(item));
    return true;
  }
  template <class T>
  Json* place(T&& item) {
    if (open_.empty()) {
      value = Json(std::forward<T>(item));
      return &value;
    }
    Json& into = *open_.back();
    if (into.is_array()) {
      into.push_back(Json(std::forward<T>(item)));
      return &into.back();
    }
    // The key is known to be new, so ordered_json need not look through all keys again.
    auto& object = into.get_ref<Json::object_t&>();
    object.Container::emplace_back(key_, Json(std::forward<T>(item)));
    return &object.back().second;
  }
  bool open(Json empty) {
    if (open_.size() >= kMaxDepth) return refuse(fmt::format("nested deeper than {}", kMaxDepth));
    open_.push_back(place(std::move(empty)));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }
  std::vector<Json*> open_;
  std::vector<std::set<std::string>> keys_;
  std::string key_;
};

}  // namespace

ApiResult<Json> parse_json(std::string_view text) {
  Builder builder;
  if (Json::sax_parse(text, &builder)) return std::move(builder.value);
  ApiError error;
  error.message = "[json] " + builder.complaint;
  error.code = "invalid_json";
  return std::unexpected(std::move(error));
}

ApiResult<Json> read_object(const HttpRequest& request) {
  auto body = parse_json(request.body);
  if (!body || body->is_object()) return body;
  ApiError error;
  error.message = fmt::format("[request] {} is given, an object wanted", show(*body));
  return std::unexpected(std::move(error));
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
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
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

std::string show(const Json& value) {
  // Infinity and NaN come from configuration files; JSON has neither.
  if (value.is_number_float() && !std::isfinite(value.get<double>())) return fmt::format("{}", value.get<double>());
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

std::unexpected<ApiError> Fields::wrong(const char* name, const std::string& what) const {
  ApiError error;
  error.param = prefix_ + (*name == '\0' ? "\"\"" : name);
  error.message = fmt::format("[request] {}: {}", error.param, what);
  return std::unexpected(std::move(error));
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
  if (!value->is_number()) return unlike(name, *value, "a number");
  const double number = value->get<double>();
  if (!(number >= low && number <= high)) return unlike(name, *value, fmt::format("{} to {}", low, high));
  return number;
}

ApiResult<std::optional<std::int64_t>> Fields::get_int(const char* name, std::int64_t low, std::int64_t high) {
  const Json* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) return unlike(name, *value, "a whole number");
  const auto number = whole_number(*value);
  if (!number && value->is_number_float() && value->get<double>() != std::trunc(value->get<double>()))
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

ApiResult<std::optional<std::string>> Fields::get_choice(const char* name, std::initializer_list<const char*> values) {
  const Json* value = get(name);
  if (value == nullptr) return std::nullopt;
  std::string all;
  for (const char* one : values) {
    if (value->is_string() && value->get_ref<const std::string&>() == one) return std::string(one);
    all += (all.empty() ? "" : ", ") + std::string(one);
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
