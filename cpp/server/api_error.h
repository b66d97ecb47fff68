// An error as the API shows it: an HTTP status and OpenAI's error object.
// Thread rule: plain values.
#pragma once

#include <expected>
#include <string>

#include "server/http.h"
#include "zinc_rt/status.h"

namespace zinc_rt::server {

struct ApiError {
  int status = 400;
  std::string message;
  std::string param;         // the field at fault; empty: null
  std::string code;          // such as context_length_exceeded; empty: null
  std::string allow;         // with 405: the methods that there are
  double retry_after_s = 0;  // with 429 and 503; 0: the client may not know when
};

template <class T>
using ApiResult = std::expected<T, ApiError>;

// Of the engine's errors: kInvalidArgument 400, kNotFound 404, kExhausted 503, kUnavailable 503, else 500.
ApiError to_api_error(const Error& error);

// {"error": {"message", "type", "param", "code"}}
std::string error_json(const ApiError& error);
HttpResponse error_response(const ApiError& error);

}  // namespace zinc_rt::server
