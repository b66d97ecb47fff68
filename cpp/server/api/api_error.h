// ApiError is the error that a client gets as its answer: the HTTP status, and the fields of OpenAI's error object.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "server/http/http.h"
#include "zinc_rt/status.h"

namespace zinc_rt::server {

constexpr const char* kJson = "application/json";

struct ApiError {
  int status = 400;
  std::string message;
  std::string param;         // the request's field that is wrong; empty: null in the answer
  std::string code;          // such as context_length_exceeded; empty: null in the answer
  std::string allow;         // with status 405: the methods that the path accepts
  double retry_after_s = 0;  // with 429 and 503: when the client should retry; 0: not known
  bool is_final = false;     // true: the same request would fail again, so a header tells clients not to retry
  Headers headers;           // additional headers of the answer
};

ApiError make_error(int status, std::string message, std::string param = {});

// Returns the error (503) for a server that takes no more requests because it is shutting down.
ApiError shutting_down();

template <class T>
using ApiResult = std::expected<T, ApiError>;

// Returns an error (400) about a field of the request.
std::unexpected<ApiError> wrong_field(std::string field, const std::string& what);

// ErrorSource tells where an engine error comes from: a client's request to a model, or the file of a model that is
// loaded.
enum class ErrorSource : std::uint8_t { kRequest, kModelFile };

// Converts an engine error with the table in api_error.cpp. The status is 503 only if a retry may help. `code` becomes
// the name of the error's reason. The caller must set `param`, because each API has its own names of fields.
ApiError to_api_error(const Error& error, ErrorSource source = ErrorSource::kRequest);

// Returns the body {"error": {"message", "type", "param", "code"}}.
std::string error_json(const ApiError& error);
HttpResponse error_response(const ApiError& error);
// A MakeErrorResponse writes an error in the form of one API. error_forms.h chooses the function by the request's path.
using MakeErrorResponse = HttpResponse (*)(const ApiError& error);

}  // namespace zinc_rt::server
