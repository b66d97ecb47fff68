#include "base/strict_json.h"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <utility>
#include <vector>

namespace zinc_rt {
namespace {

using Json = nlohmann::ordered_json;

// Builds the value. Stops at the first fault.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(std::size_t max_depth) : max_depth_(max_depth) {}
  Json value;
  JsonFault fault;

  bool null() override { return put(nullptr); }
  bool boolean(bool b) override { return put(b); }
  bool number_integer(number_integer_t n) override { return put(n); }
  bool number_unsigned(number_unsigned_t n) override { return put(n); }
  bool number_float(number_float_t n, const string_t& text) override {
    if (std::isfinite(n)) return put(n);
    return refuse({JsonFault::Kind::kValue, fmt::format("the number {} is out of range", text.substr(0, 40))});
  }
  bool string(string_t& s) override { return put(std::move(s)); }
  bool binary(binary_t&) override { return false; }  // no text has it
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& k) override {
    key_ = std::move(k);
    if (keys_.back().insert(key_).second) return true;
    return refuse(
        {JsonFault::Kind::kValue, fmt::format("the key \"{}\" is given twice in one object", key_.substr(0, 80))});
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception& error) override {
    return refuse({JsonFault::Kind::kSyntax, error.what(), at});
  }

 private:
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
    // The key is known to be new: ordered_json would look through all keys again.
    auto& object = into.get_ref<Json::object_t&>();
    object.Container::emplace_back(key_, Json(std::forward<T>(item)));
    return &object.back().second;
  }
  bool open(Json empty) {
    if (open_.size() >= max_depth_) return refuse({JsonFault::Kind::kDepth, {}});
    open_.push_back(place(std::move(empty)));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  std::size_t max_depth_;
  std::vector<Json*> open_;
  std::vector<std::set<std::string>> keys_;
  std::string key_;
};

}  // namespace

std::expected<Json, JsonFault> read_strict_json(std::string_view text, std::size_t max_depth) {
  Builder builder(max_depth);
  if (Json::sax_parse(text, &builder)) return std::move(builder.value);
  return std::unexpected(std::move(builder.fault));
}

}  // namespace zinc_rt
