// POST /v1/prefix: how much of a prompt the prefix cache holds.
#include <fmt/format.h>

#include "base/error.h"
#include "server/core.h"
#include "server/incoming.h"
#include "server/openai_request.h"

namespace zinc_rt::server {
namespace {

ApiResult<std::string> cached_prefix(ServerCore& core, const Exchange& exchange, const ServedModel& model,
                                     Request request) {
  if (request.tools && !core.models.reads_tools(model, request.chat_template_kwargs.value_or("")))
    return std::unexpected(tools_not_read(model));
  request.model = model.engine_name;
  const auto session = exchange.caller.tenant->tenant.session();
  if (!session) return std::unexpected(to_api_error(session.error()));
  const auto prefix = session->cached_prefix(std::move(request));
  if (!prefix) return std::unexpected(prompt_error(prefix.error(), "prompt", model.max_context));
  return Json{{"model", model.id},
              {"n_tokens", prefix->n_tokens},
              {"cached_tokens", prefix->cached_tokens},
              {"device", prefix->device}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The body is that of the chat or completion that would be sent.
void ask(ServerCore& core, Exchange& exchange) {
  if (exchange.caller.tenant == nullptr) return answer(core, exchange, tenant_name(exchange).error());
  const auto body = read_object(exchange.request);
  if (!body) return answer(core, exchange, body.error());
  std::vector<std::string> ignored;
  const auto parse = body->contains("messages") ? parse_chat : parse_completion;
  auto call = parse(*body, {}, core.is_tolerant ? &ignored : nullptr);
  if (!call) return answer(core, exchange, call.error());
  if (call->requests.size() != 1) {
    ApiError error;
    error.message = fmt::format("[request] prompt: a list of {} prompts, one wanted", call->requests.size());
    error.param = "prompt";
    return answer(core, exchange, error);
  }
  auto asker = asker_of(exchange);
  auto held = std::make_shared<Exchange>(std::move(exchange));
  auto request = std::make_shared<Request>(std::move(call->requests.front()));
  core.on_demand.find(request->model, std::move(asker), [&core, held, request](const ApiResult<ServedModel>& model) {
    if (!model) return answer(core, *held, model.error());
    answer_with(core, *held, cached_prefix(core, *held, *model, std::move(*request)));
  });
}

}  // namespace

void add_prefix_routes(Router& router, ServerCore& core) {
  router.add({"POST", "/v1/prefix", Access::kKey, false, [&core](Exchange& exchange) { ask(core, exchange); }});
}

}  // namespace zinc_rt::server
