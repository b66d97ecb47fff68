// Writes errors in the form of the API that the path belongs to, whichever part of the server found them.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "server/api/api_error.h"

namespace zinc_rt::server {

// {"type": "error", "error": {"type", "message"}}, the form of Anthropic's API.
HttpResponse messages_error(const ApiError& error);
// {"error": "..."}, the form of Ollama's API.
HttpResponse ollama_error(const ApiError& error);

// Returns the form for a path. It is OpenAI's if the path belongs to no other API or is empty.
MakeErrorResponse error_form_of(std::string_view path);

// The function for TransportOptions::refusal.
HttpResponse refusal_of_transport(int status, const std::string& path, const std::string& why);

}  // namespace zinc_rt::server
