// BodyReader reads the fields of a request's body. The functions below it read fields that several generating endpoints
// share.
// Thread rule: one thread at a time.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "base/conversation.h"
#include "base/json_number.h"
#include "server/api/generation_call.h"
#include "server/api/json_in.h"
#include "zinc_rt/request_fields.h"

namespace zinc_rt::server {

constexpr std::size_t kMaxIds = 1 << 22;  // the most token ids of a prompt

// Reads the fields of one JSON object, one after another. After the first error it reads nothing more. error() returns
// this error.
class BodyReader {
 public:
  // Reads a whole body, or an object in it whose fields are rows of the table of fields (zinc_rt/request_fields.h).
  // `taker` is the API that the body was sent to. finish() returns an error of this program (status 500) if the reader
  // did not read exactly the fields that the table lists for this API. If `ignored` is null, finish() returns an error
  // (status 400) for a field that the reader does not read. Else it appends the names of such fields to `ignored`.
  BodyReader(const Json& body, std::vector<std::string>* ignored, RequestField::TakenBy taker, std::string prefix = {})
      : fields_(body, std::move(prefix)), ignored_(ignored), taker_(taker) {}
  // Reads an object inside a body that the table of fields does not describe. `ignored` means the same as above.
  explicit BodyReader(const Json& body, std::vector<std::string>* ignored, std::string prefix = {})
      : fields_(body, std::move(prefix)), ignored_(ignored) {}

  bool is_good() const { return !error_; }
  ApiError error() const { return *error_; }
  Fields& fields() { return fields_; }
  std::vector<std::string>* ignored() const { return ignored_; }

  // Returns the value if the field is present and no error has occurred.
  template <class T>
  std::optional<T> take(ApiResult<std::optional<T>> value) {
    if (error_) return std::nullopt;
    if (value) return std::move(*value);
    error_ = std::move(value.error());
    return std::nullopt;
  }
  std::optional<bool> boolean(const char* name) { return take(fields_.get_bool(name)); }
  std::optional<double> number(const char* name, double low, double high) {
    return take(fields_.get_number(name, low, high));
  }
  std::optional<std::int64_t> integer(const char* name, std::int64_t low, std::int64_t high) {
    return take(fields_.get_int(name, low, high));
  }
  std::optional<std::string> string(const char* name, std::size_t max_bytes) {
    return take(fields_.get_string(name, max_bytes));
  }
  template <class Out>
  void into(Out& out, std::optional<double> value) {
    if (value) out = static_cast<Out>(*value);
  }
  template <class Out>
  void into(Out& out, std::optional<std::int64_t> value) {
    if (value) out = static_cast<Out>(*value);
  }
  void into(bool& out, std::optional<bool> value) {
    if (value) out = *value;
  }
  void into(std::string& out, std::optional<std::string> value) {
    if (value) out = std::move(*value);
  }
  void wrong(const char* name, const std::string& what) {
    if (!error_) error_ = fields_.wrong(name, what).error();
  }
  // Reports an error in an element of the list field `name`. The message names the element by `place`.
  void wrong_entry(const char* name, const std::string& place, const std::string& what) {
    if (!error_) error_ = make_error(400, fmt::format("[request] {}: {}", place, what), fields_.full_name(name));
  }
  void wrong(const ApiError& error) {
    if (!error_) error_ = error;
  }
  // Refuses a field that this server does not support, unless its value is null or one of `harmless`, values without an
  // effect.
  void refuse(const char* name, const char* why, std::initializer_list<Json> harmless = {}) {
    pass_over({name});
    const Json* value = fields_.get(name);
    if (value == nullptr) return;
    for (const Json& good : harmless)
      if (*value == good || (good.is_number() && is_json_number(*value) && good == number_value(*value))) return;
    wrong(name, fmt::format("{} is not served: {}", show(*value), why));
  }
  // Accepts and ignores fields that have no effect in this server. The table of fields has no rows for them.
  void pass_over(std::initializer_list<const char*> names) {
    for (const char* name : names) static_cast<void>(fields_.get(name));
    rowless_.insert(rowless_.end(), names.begin(), names.end());
  }
  // If the field is given, calls read(reader) to read the object's fields.
  template <class Read>
  void object(const char* name, Read&& read, const char* wanted = "an object") {
    if (const Json* value = fields_.get(name)) object_at(name, *value, read, wanted);
  }
  // Does the same for an object whose fields are in the table of fields.
  template <class Read>
  void object(const char* name, RequestField::TakenBy taker, Read&& read) {
    const Json* value = fields_.get(name);
    if (value == nullptr) return;
    if (!value->is_object()) return wrong(name, fmt::format("{} is given, an object wanted", show(*value)));
    read_inner(BodyReader(*value, ignored_, taker, fields_.full_name(name) + "."), read);
  }
  // Does the same for a value at any place in the body.
  template <class Read>
  void object_at(const char* place, const Json& value, Read&& read, const char* wanted = "an object") {
    if (!value.is_object()) return wrong(place, fmt::format("{} is given, {} wanted", show(value), wanted));
    read_inner(BodyReader(value, ignored_, fields_.full_name(place) + "."), read);
  }
  // Called after all fields were read. Returns the first error, or an error about a field that nobody has read.
  ApiResult<void> finish();

 private:
  template <class Read>
  void read_inner(BodyReader inner, Read&& read) {
    read(inner);
    if (const auto done = inner.finish(); !done) wrong(done.error());
  }

  Fields fields_;
  std::vector<std::string>* ignored_;
  std::optional<RequestField::TakenBy> taker_;
  std::vector<std::string_view> rowless_;  // names of fields that have no row in the table of fields
  std::optional<ApiError> error_;
};

// Reads the fields that only set a member of Request, as the rows of the table say (zinc_rt/request_fields.h).
void read_members(BodyReader& r, RequestField::TakenBy taker, Request& request);
// The functions from here on each read a field that several APIs share. They report errors to `r`.
// Reads OpenAI's reasoning effort and passes it to the template as a variable. "none" disables thinking.
void read_effort(BodyReader& r, const char* name, Json& variables);
// Reads service_tier, which must be one of `names`, and sets the request's class by it.
void read_service_tier(BodyReader& r, const std::vector<std::string>& names, GenerationCall& call, Request& request);
// Reads and ignores fields such as `user`, which are only for the caller's own records.
void read_callers_names(BodyReader& r);
// Reads `metadata`, which the caller adds for its own records: an object of at most 16 texts, within OpenAI's bounds.
// Returns null if the field is absent or wrong.
const Json* read_metadata(BodyReader& r);
// Reads the fields that all of OpenAI's generating endpoints share.
void read_common(BodyReader& r, RequestField::TakenBy taker, GenerationCall& call, Request& request);
// Reads a chat's logprobs (true or false) and top_logprobs (how many of the most likely tokens).
void read_logprobs(BodyReader& r, GenerationCall& call, Request& request);
// Reads the limit on generated tokens from whichever of `names` is present; it is `absent` if none is.
void read_max_tokens(BodyReader& r, Request& request, std::initializer_list<const char*> names, std::uint32_t absent,
                     bool may_be_0);
// Reads the output format from the fields of OpenAI, vLLM, SGLang and llama.cpp (output_format.cpp).
void read_output_format(BodyReader& r, Request& request, GenerationCall& call);
// Sets the answer's format from the field `name`. A second format is refused.
void set_format(BodyReader& r, const char* name, OutputFormat format, Request& request, GenerationCall& call);
// Sets a JSON schema, an object or true, as the answer's format.
void set_schema(BodyReader& r, const char* name, const Json& schema, Request& request, GenerationCall& call);
// Reads OpenAI's tool_choice: auto, none, required, or an object. The object names a function, or it lists the allowed
// functions. The function's name is in the object's member `path`, or at its top level if `path` is empty. "none"
// removes the tools.
void read_tool_choice(BodyReader& r, const char* path, Request& request, Conversation& chat, GenerationCall& call);
// Reads Ollama's fields "model" and "options" (read_ollama.cpp).
void read_ollama_model(BodyReader& r, Request& request);
// Reads "keep_alive" in seconds. Only 0 has an effect: it unloads the model. A setting of the server says how long idle
// models stay loaded.
std::optional<double> read_keep_alive(BodyReader& r);
void read_ollama_options(BodyReader& r, GenerationCall& call, Request& request);

}  // namespace zinc_rt::server
