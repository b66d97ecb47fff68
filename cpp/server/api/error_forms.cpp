#include "server/api/error_forms.h"

#include <fmt/format.h>

#include "base/json_text.h"

namespace zinc_rt::server {
namespace {

const char* messages_type_of(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case 529: return "overloaded_error";
    default: return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

struct FormRow {
  std::string_view path;  // includes all paths below it
  MakeErrorResponse make;
};
constexpr FormRow kForms[] = {{"/v1/messages", messages_error}, {"/api", ollama_error}};

}  // namespace

HttpResponse messages_error(const ApiError& error) {
  auto response = error_response(error);
  if (response.status == 503) response.status = 529;  // Anthropic's clients retry after 529
  // With this wording of the message, Anthropic's clients shorten the conversation.
  const bool is_too_long = error.code == "context_length_exceeded";
  response.body =
      fmt::format(R"({{"type":"error","error":{{"type":"{}","message":{}}}}})", messages_type_of(response.status),
                  json_string((is_too_long ? "prompt is too long: " : "") + error.message));
  return response;
}

HttpResponse ollama_error(const ApiError& error) {
  auto response = error_response(error);
  response.body = R"({"error":)" + json_string(error.message) + "}";
  return response;
}

MakeErrorResponse error_form_of(std::string_view path) {
  // Azure's paths have "/openai" before the same paths.
  constexpr std::string_view kAzure = "/openai", kAzureV1 = "/openai/v1/";
  if (path.starts_with(kAzureV1)) path.remove_prefix(kAzure.size());
  for (const auto& [root, make] : kForms)
    if (path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/')) return make;
  return error_response;
}

HttpResponse refusal_of_transport(int status, const std::string& path, const std::string& why) {
  auto error = make_error(status, why);
  if (status == 429 || status == 503) error.retry_after_s = 1;
  return error_form_of(path)(error);
}

}  // namespace zinc_rt::server
