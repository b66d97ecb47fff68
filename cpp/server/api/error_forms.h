// Formats errors. Each path uses the form of its API, whatever part of the server found the error.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "server/api/api_error.h"

namespace zinc_rt::server {

// {"type": "error", "error": {"type", "message"}}, as Anthropic's API has it.
HttpResponse messages_error(const ApiError& error);
// {"error": "..."}, as Ollama's API has it.
HttpResponse ollama_error(const ApiError& error);

// OpenAI's form for paths of no other API, and for the empty path.
MakeErrorResponse error_form_of(std::string_view path);

// As TransportOptions::refusal wants it.
HttpResponse refusal_of_transport(int status, const std::string& path, const std::string& why);

}  // namespace zinc_rt::server
