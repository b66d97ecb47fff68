// /v1/messages/count_tokens.
#include "server/answer_writer.h"
#include "server/core.h"

namespace zinc_rt::server {
namespace {

void refuse_count(ServerCore& core, Exchange& exchange, const ApiError& error) {
  exchange.connection->note("error", error.message);
  auto response = messages_error(error);
  core.metrics.answered(response.status);
  response.headers.emplace_back("x-request-id", exchange.id);
  exchange.connection->respond(std::move(response));
}

// As many as the usage of the same request would have.
void count_tokens(ServerCore& core, Exchange& exchange) {
  auto body = read_object(exchange.request);
  if (!body) return refuse_count(core, exchange, body.error());
  if (!body->contains("max_tokens")) (*body)["max_tokens"] = 1;  // which this path does not ask for
  std::vector<std::string> ignored;
  auto call = parse_messages(*body, {}, core.is_tolerant ? &ignored : nullptr);
  if (!call) return refuse_count(core, exchange, call.error());
  auto asker = asker_of(exchange);
  auto held = std::make_shared<Exchange>(std::move(exchange));
  auto request = std::make_shared<Request>(std::move(call->requests.front()));
  core.on_demand.find(request->model, std::move(asker), [&core, held, request](const ApiResult<ServedModel>& model) {
    if (!model) return refuse_count(core, *held, model.error());
    if (request->tools && !core.models.reads_tools(*model, request->chat_template_kwargs.value_or("")))
      return refuse_count(core, *held, tools_not_read(*model));
    request->model = model->engine_name;
    request->cancel = held->gone.get_token();
    const auto count = core.engine.count_prompt(std::move(*request));
    if (!count) return refuse_count(core, *held, to_api_error(count.error()));
    answer(core, *held, Json{{"input_tokens", *count}}.dump());
  });
}

}  // namespace

void add_messages_routes(Router& router, ServerCore& core) {
  router.add({"POST", "/v1/messages/count_tokens", Access::kKey, false,
              [&core](Exchange& exchange) { count_tokens(core, exchange); }});
}

}  // namespace zinc_rt::server
