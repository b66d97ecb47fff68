// Functions that handlers call before a request's model has been found. They read the body of a request for generation
// or embeddings, or refuse it.
// Thread rule: any thread; only one handler uses an Exchange.
#pragma once

#include <string>

#include "server/api/json_in.h"
#include "server/core.h"
#include "server/generation_job.h"
#include "zinc_rt/request.h"

namespace zinc_rt::server {

// Parses the body, a JSON object, and frees its text. If the path names a model, the field "model" is set to it.
// Errors: 503 while the server accepts no requests, 403 for a key that belongs to no tenant, those of read_object.
ApiResult<Json> take_body(ServerCore& core, Exchange& exchange);
// Returns a request whose members have the values for fields that the body does not contain.
Request default_request(const Exchange& exchange);
// If the request is a line of a batch, sets the class of all `requests` to batch, whatever the body says.
void set_class(const Exchange& exchange, std::vector<Request>& requests);
// Returns the traceparent header of W3C Trace Context (version, 32 hex digits of the trace, 16 of the caller's span,
// flags). Empty if the header is missing or malformed; the standard requires to ignore malformed headers.
std::string traceparent_of(const HttpRequest& request);
// Reads a proxy's x-slo-ttft-ms and x-slo-tpot-ms. Values that are not numbers are ignored.
WantedLatency wanted_latency_of(const Exchange& exchange);
// Lists ignored fields in the answer's headers and in the access log.
void note_ignored(const std::vector<std::string>& ignored, const Exchange& exchange, Headers& headers);
// Answers with the error and with headers that report the tenant's rate limits.
void refuse(ServerCore& core, Exchange& exchange, ApiError error);

// Refuses tools if the template ignores them (writes the same prompt without them), because the model would answer as
// if no tools were given. The chat's variables are passed to the template in this test.
ApiResult<void> check_tools_are_read(ServerCore& core, const ServedModel& model, const Conversation& chat);
using ReadPrompt = ApiResult<Request> (*)(ServerCore& core, const Exchange& exchange);
using WorkOnPrompt = ApiResult<std::string> (*)(ServerCore& core, const Exchange& exchange, const ServedModel& model,
                                                Request request);
// Returns a function for Route::handle. The handler calls `read` to read a prompt from the body, and then `work`, which
// returns the answer's body. The Request that `work` gets has the engine's name of the model.
std::function<void(Exchange&)> answering_for_prompt(ServerCore& core, ReadPrompt read, WorkOnPrompt work);

}  // namespace zinc_rt::server
