#include "server/incoming.h"

#include <fmt/format.h>

#include "base/conversation.h"
#include "base/error.h"
#include "base/read_number.h"
#include "server/access_log.h"
#include "server/answers/model_answers.h"

namespace zinc_rt::server {

std::string traceparent_of(const HttpRequest& request) {
  const auto text = request.header("traceparent");
  const auto is_hex = [&](std::size_t at, std::size_t n) {
    return text.substr(at, n).find_first_not_of("0123456789abcdef") == std::string_view::npos;
  };
  const auto is_zero = [&](std::size_t at, std::size_t n) {
    return text.substr(at, n).find_first_not_of('0') == std::string_view::npos;
  };
  const bool has_form = text.size() >= 55 && text.size() <= 256 && text[2] == '-' && text[35] == '-' && text[52] == '-';
  if (!has_form || (text.size() > 55 && (text.starts_with("00") || text[55] != '-'))) return {};
  if (!is_hex(0, 2) || !is_hex(3, 32) || !is_hex(36, 16) || !is_hex(53, 2)) return {};
  if (text.starts_with("ff") || is_zero(3, 32) || is_zero(36, 16)) return {};
  return std::string(text.substr(0, 55));
}

ApiResult<Json> take_body(ServerCore& core, Exchange& exchange) {
  if (const auto why = core.why_not_ready(); !why.empty()) {
    core.metrics.refused("not_ready");
    auto error = make_error(503, "[server] " + why);
    error.retry_after_s = 5;
    return std::unexpected(std::move(error));
  }
  if (!exchange.caller.tenant)
    return std::unexpected(make_error(403, "[keys] this is an admin's key; requests need one of a tenant"));
  ZRT_TRY(auto body, read_object(exchange.request));
  std::string().swap(exchange.request.body);
  // A path of Azure's API names the model, whatever the body says.
  if (const auto named = exchange.params.find("model"); named != exchange.params.end()) body["model"] = named->second;
  return body;
}

Request default_request(const Exchange& exchange) {
  Request defaults;
  defaults.temperature = 1;
  // If the server has no keys, a request may name any class. The default is standard.
  if (exchange.caller.is_admin) defaults.qos = "standard";
  if (!exchange.caller.qos_class.empty()) defaults.qos = exchange.caller.qos_class;
  return defaults;
}

WantedLatency wanted_latency_of(const Exchange& exchange) {
  if (!exchange.caller.is_proxied) return {};
  const auto ms = [&](const char* name, const char* llm_d_name) {
    auto text = exchange.request.header(name);
    if (text.empty()) text = exchange.request.header(llm_d_name);
    std::uint32_t value = 0;
    return read_number(text, value) ? value : 0;
  };
  return {ms("x-slo-ttft-ms", "x-llm-d-slo-ttft-ms"), ms("x-slo-tpot-ms", "x-llm-d-slo-tpot-ms")};
}

void set_class(const Exchange& exchange, std::vector<Request>& requests) {
  if (!exchange.is_of_batch) return;
  for (Request& request : requests) request.qos = "batch";
}

void note_ignored(const std::vector<std::string>& ignored, const Exchange& exchange, Headers& headers) {
  if (ignored.empty()) return;
  const auto names = header_of_names(ignored);
  headers.emplace_back(kIgnoredHeader, names);
  exchange.connection->note("ignored_fields", names);
}

void refuse(ServerCore& core, Exchange& exchange, ApiError error) {
  if (exchange.caller.tenant) exchange.caller.tenant->tell_rates(error.headers);
  answer(core, exchange, error);
}

ApiResult<void> check_tools_are_read(ServerCore& core, const ServedModel& model, const Conversation& chat) {
  if (chat.tools.is_null()) return {};
  if (core.models.reads_tools(model, chat.variables.empty() ? std::string() : as_text(chat.variables))) return {};
  return std::unexpected(tools_unread(model.id));
}

std::function<void(Exchange&)> answering_for_prompt(ServerCore& core, ReadPrompt read, WorkOnPrompt work) {
  return [=, &core](Exchange& exchange) {
    auto found = read(core, exchange);
    if (!found) return answer(core, exchange, found.error());
    const auto request = std::make_shared<Request>(std::move(*found));
    find_model(core, exchange, request->model, [=, &core](Exchange& held, const ApiResult<ServedModel>& model) {
      const auto text = [&]() -> ApiResult<std::string> {
        if (!model) return std::unexpected(model.error());
        if (request->conversation) ZRT_CHECK_OK(check_tools_are_read(core, *model, *request->conversation));
        request->model = model->engine_name;
        return work(core, held, *model, std::move(*request));
      }();
      if (!text) return answer(core, held, text.error());
      answer(core, held, *text);
    });
  };
}

}  // namespace zinc_rt::server
