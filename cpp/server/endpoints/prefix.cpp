// Handles POST /v1/prefix, which tells how much of a prompt the prefix cache holds.
#include <fmt/format.h>

#include "base/error.h"
#include "server/api/generation_call.h"
#include "server/api/request_checks.h"
#include "server/core.h"
#include "server/incoming.h"

namespace zinc_rt::server {
namespace {

// Reads the body of the chat or completion that the client would send.
ApiResult<Request> read_asked(ServerCore& core, const Exchange& exchange) {
  if (exchange.caller.tenant == nullptr) return std::unexpected(tenant_name(exchange).error());
  ZRT_TRY(const auto body, read_object(exchange.request));
  std::vector<std::string> ignored;
  const auto parse = body.contains("messages") ? parse_chat : parse_completion;
  ZRT_TRY(auto call, parse(body, {}, core.is_tolerant ? &ignored : nullptr));
  if (call.requests.size() == 1) return std::move(call.requests.front());
  return wrong_field("prompt", fmt::format("a list of {} prompts, one wanted", call.requests.size()));
}

ApiResult<std::string> cached_prefix(ServerCore&, const Exchange& exchange, const ServedModel& model, Request request) {
  const auto session = exchange.caller.tenant->tenant.session();
  if (!session) return std::unexpected(to_api_error(session.error()));
  const auto prefix = session->cached_prefix(std::move(request));
  if (!prefix) return std::unexpected(prompt_error(prefix.error(), "prompt", model.max_context));
  return as_text(Json{{"model", model.id},
                      {"n_tokens", prefix->n_tokens},
                      {"cached_tokens", prefix->cached_tokens},
                      {"device", prefix->device}});
}

}  // namespace

void add_prefix_routes(Router& router, ServerCore& core) {
  router.add({"POST", "/v1/prefix", Access::kKey, false, answering_for_prompt(core, read_asked, cached_prefix)});
}

}  // namespace zinc_rt::server
