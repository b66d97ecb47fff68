#include "grammar/json_reader.h"

#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace zinc_rt::grammar {
namespace {

class JsonBuilder final : public nlohmann::json_sax<Json> {
 public:
  explicit JsonBuilder(const Limits& limits) : limits_(limits) {}
  Json value;
  std::optional<Error> error;

  bool null() override { return put(nullptr); }
  bool boolean(bool b) override { return put(b); }
  bool number_integer(number_integer_t n) override { return put(n); }
  bool number_unsigned(number_unsigned_t n) override { return put(n); }
  bool number_float(number_float_t n, const string_t& text) override {
    if (!std::isfinite(n))
      return refuse(fail(StatusCode::kInvalidArgument, "[schema] the number {} is out of range", text.substr(0, 40)));
    return put(n);
  }
  bool string(string_t& s) override { return put(std::move(s)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& k) override {
    key_ = std::move(k);
    if (keys_.back().insert(key_).second) return true;
    return refuse(
        fail(StatusCode::kInvalidArgument, "[schema] the key \"{}\" is given twice in one object", key_.substr(0, 80)));
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception&) override {
    return refuse(fail(StatusCode::kInvalidArgument, "[schema] byte {}: this is not JSON", at));
  }

 private:
  bool refuse(std::unexpected<Error> why) {
    error = std::move(why).error();
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
    if (open_.size() >= limits_.max_depth)
      return refuse(too_complex("nesting of a schema's text", open_.size() + 1, limits_.max_depth));
    open_.push_back(place(std::move(empty)));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  const Limits& limits_;
  std::vector<Json*> open_;
  std::vector<std::set<std::string>> keys_;
  std::string key_;
};

}  // namespace

Result<Json> read_json(std::string_view text, const Limits& limits) {
  if (text.size() > limits.max_source_bytes)
    return too_complex("bytes of a schema", text.size(), limits.max_source_bytes);
  JsonBuilder builder(limits);
  if (Json::sax_parse(text, &builder) && !builder.error) return std::move(builder.value);
  if (!builder.error) return fail(StatusCode::kInvalidArgument, "[schema] this is not JSON");
  return std::unexpected(*builder.error);
}

}  // namespace zinc_rt::grammar
