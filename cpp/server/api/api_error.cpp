#include "server/api/api_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
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

// StatusRow maps a code of engine errors to two HTTP statuses: one for errors that a client's request caused, and one
// for errors in a model's file.
struct StatusRow {
  StatusCode code;
  int request, model_file;
};
constexpr StatusRow kStatuses[] = {
    {StatusCode::kInvalidArgument, 400, 400},
    {StatusCode::kNotFound, 404, 422},  // model_file: a part of the file is missing
    // For a request: it exceeds a limit. For a model's file: other models use the memory that this model needs.
    {StatusCode::kExhausted, 400, 409},
    // The model may be loaded later; or the file's format is not supported.
    {StatusCode::kUnavailable, 503, 422},
    // A file of the server is damaged; or the file to load is.
    {StatusCode::kCorrupt, 500, 422},
    {StatusCode::kInternal, 500, 500},
    {StatusCode::kCancelled, 499, 499},  // the client has disconnected, so nobody reads this
};

// Returns whether the answer must have a header that tells clients not to retry. OpenAI's clients retry after these
// statuses, but a retry would fail too.
bool is_final(const ApiError& error) {
  return error.is_final || error.status == 409 || error.status == 501;
}

}  // namespace

ApiError make_error(int status, std::string message, std::string param) {
  ApiError error;
  error.status = status;
  error.message = worded(std::move(message));
  error.param = std::move(param);
  return error;
}

ApiError shutting_down() {
  auto error = make_error(503, "[server] the server is shutting down");
  error.retry_after_s = 5;
  return error;
}

std::unexpected<ApiError> wrong_field(std::string field, const std::string& what) {
  auto message = fmt::format("[request] {}: {}", field, what);
  return std::unexpected(make_error(400, std::move(message), std::move(field)));
}

ApiError to_api_error(const Error& error, ErrorSource source) {
  ApiError out;
  out.message = error.message;
  out.retry_after_s = error.retry_after_s;
  out.code = to_string(error.reason);
  out.is_final = error.reason == Reason::kBadLogits;
  const auto* row = std::ranges::find(kStatuses, error.code, &StatusRow::code);
  out.status = source == ErrorSource::kRequest ? row->request : row->model_file;
  // A full queue sets a retry time. A limit that the request itself exceeds sets none.
  if (error.code == StatusCode::kExhausted && error.retry_after_s > 0) out.status = 503;
  if (out.status == 503) out.retry_after_s = std::max(out.retry_after_s, 1.0);
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
  response.content_type = kJson;
  response.body = error_json(error);
  if (error.retry_after_s > 0 && (error.status == 429 || error.status == 503))
    response.headers.emplace_back("Retry-After", fmt::format("{:.0f}", std::ceil(error.retry_after_s)));
  if (!error.allow.empty()) response.headers.emplace_back("Allow", error.allow);
  if (is_final(error)) response.headers.emplace_back("x-should-retry", "false");
  response.headers.insert(response.headers.end(), error.headers.begin(), error.headers.end());
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace zinc_rt::server
