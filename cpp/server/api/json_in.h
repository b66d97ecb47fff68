// JSON from clients: parsed strictly, and read field by field, so that every error names its field.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_error.h"

namespace zinc_rt::server {

using Json = nlohmann::ordered_json;

// Parses a text that is one JSON value. A number that neither 64 bits nor a double can reproduce keeps its text
// (base/json_number.h). Errors, each with its byte: broken JSON, invalid UTF-8, a key twice in an object, nesting
// deeper than 64.
ApiResult<Json> parse_json(std::string_view text);
// An upper bound on the bytes of the parsed value, plus the text and two copies of its strings. It looks only at what
// is outside strings, so the text need not be JSON.
std::uint64_t bytes_as_parsed(std::string_view text);
// The body as an object.
ApiResult<Json> read_object(const HttpRequest& request);

// An object from a client. Each get_* marks its field as known; null counts as absent. Errors: 400 naming the field,
// the value and what is expected.
class Fields {
 public:
  // REQUIRES: object outlives this. `prefix` is put before names in errors, such as "stream_options.".
  explicit Fields(const Json& object, std::string prefix = {}) : object_(object), prefix_(std::move(prefix)) {}

  // Null: the field is absent.
  const Json* get(const char* name);
  ApiResult<std::optional<bool>> get_bool(const char* name);
  ApiResult<std::optional<double>> get_number(const char* name, double low, double high);
  ApiResult<std::optional<std::int64_t>> get_int(const char* name, std::int64_t low, std::int64_t high);
  ApiResult<std::optional<std::string>> get_string(const char* name, std::size_t max_bytes = 1 << 20);
  // One of `values`.
  ApiResult<std::optional<std::string>> get_choice(const char* name, const std::vector<std::string>& values);
  // A list of token ids.
  ApiResult<std::optional<std::vector<std::int32_t>>> get_ids(const char* name, std::size_t max_ids,
                                                              const std::string& what = "token ids");
  // The names that were asked for so far.
  const std::set<std::string, std::less<>>& known() const { return known_; }
  std::string full_name(const char* name) const { return prefix_ + name; }
  // An error of status 400 about a field.
  std::unexpected<ApiError> wrong(const char* name, const std::string& what) const;
  // Call it after all fields are read. It refuses the first field that no get_* asked for. With `ignored`, such fields
  // are allowed and listed there once each, at most kMostIgnored.
  ApiResult<void> expect_no_others(std::vector<std::string>* ignored = nullptr) const;
  static constexpr std::size_t kMostIgnored = 32;

 private:
  std::unexpected<ApiError> unlike(const char* name, const Json& value, const std::string& wanted) const;
  const Json& object_;
  std::string prefix_;
  std::set<std::string, std::less<>> known_;
};

// For requests without a body: it must be empty or an object without fields. Errors: 400.
ApiResult<void> expect_no_fields(const HttpRequest& request);

// A value as a whole number: 2, and also 2.0, which clients send from languages with only one number type. A
// floating-point value of 2^53 or more is refused, because it may stand for its neighbours too.
std::optional<std::int64_t> whole_number(const Json& value);

// The token ids of a list; nothing if an entry is not one.
std::optional<std::vector<std::int32_t>> ids_of(const Json& list);

// The value as JSON, with numbers as they were written. Bytes in texts that are not UTF-8, which tokens may produce,
// are replaced.
std::string as_text(const Json& value);

// A short form of a value for error messages.
std::string show(const Json& value);

}  // namespace zinc_rt::server
