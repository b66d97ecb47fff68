// JSON from clients: parsed strictly, and read field by field so that every complaint names its field.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "server/api_error.h"

namespace zinc_rt::server {

using Json = nlohmann::ordered_json;

// One whole JSON value. Errors, with the byte they are at: broken JSON, invalid UTF-8, numbers out of range, a key
// given twice in an object, nesting deeper than 64.
ApiResult<Json> parse_json(std::string_view text);
// The body as an object.
ApiResult<Json> read_object(const HttpRequest& request);

// An object of a client. Each get_* marks its field as known; null is as good as absent. Errors: 400 naming the field,
// what was given and what is wanted.
class Fields {
 public:
  // REQUIRES: object outlives this. `prefix` comes before the names in complaints, such as "stream_options.".
  explicit Fields(const Json& object, std::string prefix = {}) : object_(object), prefix_(std::move(prefix)) {}

  // Null: absent.
  const Json* get(const char* name);
  ApiResult<std::optional<bool>> get_bool(const char* name);
  ApiResult<std::optional<double>> get_number(const char* name, double low, double high);
  ApiResult<std::optional<std::int64_t>> get_int(const char* name, std::int64_t low, std::int64_t high);
  ApiResult<std::optional<std::string>> get_string(const char* name, std::size_t max_bytes = 1 << 20);
  // One of `values`.
  ApiResult<std::optional<std::string>> get_choice(const char* name, std::initializer_list<const char*> values);
  // A list of token ids.
  ApiResult<std::optional<std::vector<std::int32_t>>> get_ids(const char* name, std::size_t max_ids);
  // Complaint about a field, of status 400.
  std::unexpected<ApiError> wrong(const char* name, const std::string& what) const;
  // After all are read: the first field that nobody asked for is refused.
  ApiResult<void> expect_no_others() const;

 private:
  std::unexpected<ApiError> unlike(const char* name, const Json& value, const std::string& wanted) const;
  const Json& object_;
  std::string prefix_;
  std::set<std::string, std::less<>> known_;
};

// For requests that say nothing: no body, or an object without fields. Errors: 400.
ApiResult<void> expect_no_fields(const HttpRequest& request);

// The whole number that a value is: 2, and 2.0 too, which clients of languages with one kind of number send. From 2^53
// on such a number may stand for its neighbours: it is none.
std::optional<std::int64_t> whole_number(const Json& value);

// A short form of a value for complaints.
std::string show(const Json& value);

}  // namespace zinc_rt::server
