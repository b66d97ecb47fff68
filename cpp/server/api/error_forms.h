// Chooses the form of an error by the API to which the request's path belongs. Every part of the server uses it, so
// that a client gets errors in the form of the API that it uses.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "server/api/api_error.h"

namespace zinc_rt::server {

// Writes an error in the form of Anthropic's API, {"type": "error", "error": {"type", "message"}}.
HttpResponse messages_error(const ApiError& error);
// Writes an error in the form of Ollama's API, {"error": "..."}.
HttpResponse ollama_error(const ApiError& error);

// Returns the function that writes errors for a path. It writes OpenAI's form if the path is empty or belongs to no
// other API.
MakeErrorResponse error_form_of(std::string_view path);

// Implements TransportOptions::refusal.
HttpResponse refusal_of_transport(int status, const std::string& path, const std::string& why);

}  // namespace zinc_rt::server
