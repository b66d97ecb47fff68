#include "base/strict_json.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "base/json_number.h"

namespace zinc_rt {
namespace {

using Json = nlohmann::ordered_json;
// The parser reads floats as long double, so that fewer numbers overflow. The stored value comes from the number's
// text, not from this.
using WideJson =
    nlohmann::basic_json<std::map, std::vector, std::string, bool, std::int64_t, std::uint64_t, long double>;

struct Rules {
  std::size_t max_depth = std::numeric_limits<std::size_t>::max();
  bool may_repeat_keys = false;
};

// Builds the JSON value from the parser's events. Stops at the first fault.
class Builder final : public nlohmann::json_sax<WideJson> {
 public:
  explicit Builder(Rules rules) : rules_(rules) {}
  Json value;
  JsonFault fault;

  bool null() override { return put(nullptr); }
  bool boolean(bool b) override { return put(b); }
  bool number_integer(number_integer_t n) override { return n == 0 ? put(kept_number("-0")) : put(n); }
  bool number_unsigned(number_unsigned_t n) override { return put(n); }
  bool number_float(number_float_t, const string_t& text) override {
    Json number = number_value(std::string_view(text));
    return put(number.dump() == text ? std::move(number) : kept_number(text));
  }
  bool string(string_t& s) override { return put(std::move(s)); }
  bool binary(binary_t&) override { return false; }  // never called, because JSON text has no binary values
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& k) override {
    key_ = std::move(k);
    const auto [known, is_new] = keys_.back().emplace(key_, open_.back()->size());
    repeated_ = is_new ? kNone : known->second;
    if (is_new || rules_.may_repeat_keys) return true;
    return refuse(
        {JsonFault::Kind::kValue, fmt::format("the key \"{}\" is given twice in one object", key_.substr(0, 80))});
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception& error) override {
    return refuse({JsonFault::Kind::kSyntax, error.what(), at});
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  bool refuse(JsonFault why) {
    fault = std::move(why);
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
    auto& object = into.get_ref<Json::object_t&>();
    if (repeated_ != kNone) {
      Json& former = object.Container::at(repeated_).second;
      former = Json(std::forward<T>(item));
      return &former;
    }
    // The key is known to be new, so it is appended to the container directly. ordered_json's own insertion would
    // compare it with all keys.
    object.Container::emplace_back(key_, Json(std::forward<T>(item)));
    return &object.back().second;
  }
  bool open(Json empty) {
    if (open_.size() >= rules_.max_depth) return refuse({JsonFault::Kind::kDepth, {}});
    open_.push_back(place(std::move(empty)));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  const Rules rules_;
  std::vector<Json*> open_;
  std::vector<std::map<std::string, std::size_t>> keys_;  // index of each key in its object, for each open object
  std::string key_;
  std::size_t repeated_ = kNone;  // index of key_ in the object if the object already has this key
};

// The library's lexer takes a NUL for the end of the text, so that anything could follow one. JSON has no NUL: texts
// escape it.
bool parse(std::string_view text, Builder& builder) {
  if (const auto at = text.find('\0'); at != std::string_view::npos) {
    builder.fault = {JsonFault::Kind::kSyntax, "a NUL byte", at};
    return false;
  }
  return WideJson::sax_parse(text, &builder);
}

}  // namespace

std::expected<Json, JsonFault> read_strict_json(std::string_view text, std::size_t max_depth) {
  Builder builder({.max_depth = max_depth});
  if (parse(text, builder)) return std::move(builder.value);
  return std::unexpected(std::move(builder.fault));
}

std::optional<Json> read_any_json(std::string_view text) {
  Builder builder({.may_repeat_keys = true});
  if (parse(text, builder)) return std::move(builder.value);
  return std::nullopt;
}

}  // namespace zinc_rt
