#include "server/api_error.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json_text.h"

namespace zinc_rt::server {
namespace {

const char* type_of(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    case 501: return "not_implemented_error";
    case 503: return "service_unavailable_error";
    default: return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

ApiError to_api_error(const Error& error) {
  ApiError out;
  out.message = error.message;
  out.retry_after_s = error.retry_after_s;
  switch (error.code) {
    case StatusCode::kInvalidArgument: out.status = 400; break;
    case StatusCode::kNotFound: out.status = 404; break;
    case StatusCode::kExhausted:
    case StatusCode::kUnavailable:
      out.status = 503;
      out.retry_after_s = std::max(out.retry_after_s, 1.0);
      break;
    case StatusCode::kCancelled: out.status = 499; break;  // nobody reads it: the client has left
    default: out.status = 500;
  }
  return out;
}

std::string error_json(const ApiError& e) {
  const auto or_null = [](const std::string& text) { return text.empty() ? std::string("null") : json_string(text); };
  return fmt::format(R"({{"error":{{"message":{},"type":"{}","param":{},"code":{}}}}})", json_string(e.message),
                     type_of(e.status), or_null(e.param), or_null(e.code));
}

HttpResponse error_response(const ApiError& error) {
  HttpResponse response;
  response.status = error.status;
  response.body = error_json(error);
  if (error.retry_after_s > 0 && (error.status == 429 || error.status == 503))
    response.headers.emplace_back("Retry-After", fmt::format("{:.0f}", std::ceil(error.retry_after_s)));
  if (!error.allow.empty()) response.headers.emplace_back("Allow", error.allow);
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace zinc_rt::server
