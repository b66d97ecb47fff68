// Handles /v1/messages/count_tokens.
#include "base/error.h"
#include "server/answers/answer_writer.h"
#include "server/core.h"
#include "server/incoming.h"

namespace zinc_rt::server {
namespace {

ApiResult<Request> read_counted(ServerCore& core, const Exchange& exchange) {
  ZRT_TRY(auto body, read_object(exchange.request));
  if (!body.contains("max_tokens")) body["max_tokens"] = 1;  // because this path does not require it
  std::vector<std::string> ignored;
  ZRT_TRY(auto call, parse_messages(body, {}, core.is_tolerant ? &ignored : nullptr));
  return std::move(call.requests.front());
}

// Returns the number of input tokens that `usage` would report for the same request.
ApiResult<std::string> count_tokens(ServerCore& core, const Exchange& exchange, const ServedModel&, Request request) {
  request.cancel = exchange.gone.get_token();
  const auto ids = core.engine.prompt_tokens(std::move(request));
  if (!ids) return std::unexpected(to_api_error(ids.error()));
  return Json{{"input_tokens", ids->size()}}.dump();
}

}  // namespace

void add_messages_routes(Router& router, ServerCore& core) {
  router.add({"POST", "/v1/messages/count_tokens", Access::kKey, false,
              answering_for_prompt(core, read_counted, count_tokens)});
}

}  // namespace zinc_rt::server
