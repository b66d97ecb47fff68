// Checks of a request that need its model's properties, and errors of the engine in the words of an API.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "server/api/generation_call.h"
#include "zinc_rt/model_card.h"

namespace zinc_rt::server {

// Returns what requests may use a model for: "completion", "embedding" or "rerank".
const char* capability_of(const ModelCard& card);

// Refuses a request for text if the model gives embeddings or scores. `id` is the name that clients use. Errors: 400.
ApiResult<void> check_generates(const ModelCard& card, const std::string& id);

// Checks an estimate of the answer's size, because the answer is held in memory until the client has read it.
// `max_context` is the model's, in tokens; `most` is in bytes. Errors: 400 if the answer would be too large.
ApiResult<void> check_answer_size(const GenerationCall& call, std::uint32_t max_context, std::uint64_t most);

// Refuses a context length (num_ctx of Ollama's clients) that exceeds the model's. `wanted` is 0 if the client sets
// none. Errors: 400.
ApiResult<void> check_context(std::uint32_t wanted, std::uint32_t max_context);

// Converts the engine's error about a prompt. `param` is the field at fault. If the prompt is too long, the error has
// the code and the wording of OpenAI's API, because clients recognize the error by these. For example, LiteLLM then
// uses a model with a longer context.
ApiError prompt_error(const Error& error, std::string param, std::uint32_t max_context);

// Converts the engine's error about a request. Its `param` is the API's name of the field at fault.
ApiError request_error(const Error& error, const GenerationCall& call, std::uint32_t max_context);
// The same for a prompt that the engine did not take. If the body has several prompts, the error names this one.
ApiError submit_error(const Error& error, const GenerationCall& call, std::uint32_t prompt, std::uint32_t max_context);

}  // namespace zinc_rt::server
