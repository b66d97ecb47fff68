// What handlers do with a request for computation before its model is known, and how they refuse it.
// Thread rule: any thread; an exchange belongs to one handler.
#pragma once

#include <string>

#include "server/api/json_in.h"
#include "server/core.h"
#include "server/generation_job.h"
#include "zinc_rt/request.h"

namespace zinc_rt::server {

// Takes the body out of the exchange, as an object. If the path names a model, that becomes "model". Errors: 503 while
// the server takes no requests, 403 for a key of no tenant, those of read_object.
ApiResult<Json> take_body(ServerCore& core, Exchange& exchange);
// The defaults for fields that a body does not give.
Request default_request(const Exchange& exchange);
// Gives a batch's line class batch, whatever its body says.
void set_class(const Exchange& exchange, std::vector<Request>& requests);
// W3C Trace Context: version, 32 hex digits of the trace, 16 of the caller's span, flags. Empty if there is none or it
// is malformed, which the standard says to ignore.
std::string traceparent_of(const HttpRequest& request);
// Reads a proxy's x-slo-ttft-ms and x-slo-tpot-ms. Values that are not numbers are ignored.
WantedLatency wanted_latency_of(const Exchange& exchange);
// Lists ignored fields in the answer's headers and in the access log.
void note_ignored(const std::vector<std::string>& ignored, const Exchange& exchange, Headers& headers);
// Answers with the error and the headers of the tenant's rates.
void refuse(ServerCore& core, Exchange& exchange, ApiError error);

// Refuses tools if the template ignores them (writes the same prompt without them), because the model would answer as
// if there were none. `variables`: the template's, a JSON object or empty.
ApiResult<void> check_tools_are_read(ServerCore& core, const ServedModel& model, const Conversation& chat);
// Refuses a context (num_ctx of Ollama's clients) that the model does not have. 0: not given.
ApiResult<void> check_context(std::uint32_t wanted, const ServedModel& model);

using ReadPrompt = ApiResult<Request> (*)(ServerCore& core, const Exchange& exchange);
using WorkOnPrompt = ApiResult<std::string> (*)(ServerCore& core, const Exchange& exchange, const ServedModel& model,
                                                Request request);
// For Route::handle: `read` finds a prompt in the body, and the answer is what `work` returns for it. request.model is
// the engine's name of the model.
std::function<void(Exchange&)> answering_for_prompt(ServerCore& core, ReadPrompt read, WorkOnPrompt work);

// The answer for a prompt that the engine refused. `param`: the field at fault. A text that is too long gets the code
// and the words of OpenAI's API, because clients look for them: LiteLLM falls back on a model with a longer context.
ApiError prompt_error(const Error& error, std::string param, std::uint32_t max_context);

}  // namespace zinc_rt::server
