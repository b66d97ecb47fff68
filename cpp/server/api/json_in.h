// Parses JSON from clients strictly, and reads it field by field, so that every error names its field.
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

// Parses a text that is one JSON value. A number that neither a 64-bit integer nor a double can reproduce is stored as
// its text (base/json_number.h). Errors, each with the position in bytes: malformed JSON, invalid UTF-8, a repeated key
// in an object, nesting deeper than 64.
ApiResult<Json> parse_json(std::string_view text);
// Returns an upper bound on the memory of the parsed value, the text and two copies of its strings, in bytes. The text
// is not parsed, so it need not be valid JSON.
std::uint64_t bytes_as_parsed(std::string_view text);
// Parses the text of a body, which must be an object. Errors: those of parse_json(); 400 for another value.
ApiResult<Json> parse_object(std::string_view text);
// Parses the request's body with parse_object().
ApiResult<Json> read_object(const HttpRequest& request);

// Fields reads the fields of a JSON object from a client. Each get_*() adds its field to known(). A field that is null
// counts as absent. Errors: 400 that names the field, the value and what is expected.
class Fields {
 public:
  // `prefix`, such as "stream_options.", is put before names in errors. REQUIRES: `object` outlives this.
  explicit Fields(const Json& object, std::string prefix = {}) : object_(object), prefix_(std::move(prefix)) {}

  // Returns nullptr if the field is absent or null.
  const Json* get(const char* name);
  ApiResult<std::optional<bool>> get_bool(const char* name);
  ApiResult<std::optional<double>> get_number(const char* name, double low, double high);
  ApiResult<std::optional<std::int64_t>> get_int(const char* name, std::int64_t low, std::int64_t high);
  ApiResult<std::optional<std::string>> get_string(const char* name, std::size_t max_bytes = 1 << 20);
  // Reads a text that must be one of `values`.
  ApiResult<std::optional<std::string>> get_choice(const char* name, const std::vector<std::string>& values);
  // Reads a list of token ids.
  ApiResult<std::optional<std::vector<std::int32_t>>> get_ids(const char* name, std::size_t max_ids,
                                                              const std::string& what = "token ids");
  // Returns the names of the fields that get_* has read.
  const std::set<std::string, std::less<>>& known() const { return known_; }
  std::string full_name(const char* name) const { return prefix_ + name; }
  // Returns an error of status 400 about a field.
  std::unexpected<ApiError> wrong(const char* name, const std::string& what) const;
  // Call this after all fields are read. Returns an error for the first field that no get_* has read. If `ignored` is
  // not null, such fields are no error. The name of each is then appended to `ignored` once, at most kMostIgnored
  // names.
  ApiResult<void> expect_no_others(std::vector<std::string>* ignored = nullptr) const;
  static constexpr std::size_t kMostIgnored = 32;

 private:
  std::unexpected<ApiError> unlike(const char* name, const Json& value, const std::string& wanted) const;
  const Json& object_;
  std::string prefix_;
  std::set<std::string, std::less<>> known_;
};

// Checks the body of a request that takes no body. Errors: 400 unless the body is empty or an object without fields.
ApiResult<void> expect_no_fields(const HttpRequest& request);

// Returns the value as a whole number, or nullopt. Accepts 2, and also 2.0, because some languages have only one number
// type. Refuses a floating-point value of 2^53 or more, because it may be rounded.
std::optional<std::int64_t> whole_number(const Json& value);

// Returns the token ids in a list, or nullopt if an element is not a token id.
std::optional<std::vector<std::int32_t>> ids_of(const Json& list);

// Returns the value's JSON text, with numbers as the client wrote them. Bytes that are not UTF-8, which tokens may
// produce, are replaced.
std::string as_text(const Json& value);

// Returns a shortened text of the value for error messages.
std::string show(const Json& value);

}  // namespace zinc_rt::server
