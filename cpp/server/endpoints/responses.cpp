// Handles stored answers of /v1/responses, for tenants that may store answers: reads and deletes them, and continues a
// conversation from them.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "server/core.h"

namespace zinc_rt::server {
namespace {

ApiError no_response(const std::string& id, const char* param) {
  return make_error(404,
                    fmt::format("[responses] there is no \"{}\" of this tenant: answers are kept where it "
                                "may_store, for {} hours",
                                id.substr(0, 100), StateStore::kResponsesKept_s / 3600),
                    param);
}

// Reads {"input", "response"} of a stored answer; `held` counts its bytes. Each stored answer includes the whole
// conversation before it, so the size limit of a body applies to it. `n_more` is the number of bytes that the request
// adds.
ApiResult<Json> find_kept(ServerCore& core, const Exchange& exchange, const std::string& id, const char* param,
                          ByteBudget::Hold& held, std::uint64_t n_more = 0) {
  if (!exchange.caller.tenant) return std::unexpected(no_response(id, param));
  const auto& tenant = exchange.caller.tenant->name;
  const auto size = core.store->response_bytes(tenant, id);
  if (!size) return std::unexpected(to_api_error(size.error()));
  if (!*size) return std::unexpected(no_response(id, param));
  if (const std::uint64_t most = core.max_body_bytes; n_more > 0 && **size + n_more > most) {
    auto error = make_error(400,
                            fmt::format("[responses] the conversation up to \"{}\" has {} bytes and the request {}, {} "
                                        "allowed in all (max_body_bytes): send a shorter conversation as input",
                                        id, **size, n_more, most),
                            param);
    error.code = "context_length_exceeded";
    return std::unexpected(std::move(error));
  }
  ZRT_CHECK_OK(hold_parsed(core, exchange, held, **size));  // counts the body's bytes before the body is read
  const auto body = core.store->response(tenant, id);
  if (!body) return std::unexpected(to_api_error(body.error()));
  if (!*body) return std::unexpected(no_response(id, param));
  ZRT_CHECK_OK(hold_parsed(core, exchange, held, bytes_as_parsed(**body)));
  return parse_json(**body);
}

ApiResult<std::string> show_response(ServerCore& core, const Exchange& exchange) {
  ByteBudget::Hold held;
  ZRT_TRY(const auto kept, find_kept(core, exchange, exchange.params.at("id"), "", held));
  return as_text(kept["response"]);
}

ApiResult<std::string> show_input(ServerCore& core, const Exchange& exchange) {
  ByteBudget::Hold held;
  ZRT_TRY(auto kept, find_kept(core, exchange, exchange.params.at("id"), "", held));
  return as_text(Json{{"object", "list"}, {"data", std::move(kept["input"])}, {"has_more", false}});
}

ApiResult<std::string> delete_response(ServerCore& core, const Exchange& exchange) {
  const auto& id = exchange.params.at("id");
  if (!exchange.caller.tenant) return std::unexpected(no_response(id, ""));
  const auto removed = core.store->remove_response(exchange.caller.tenant->name, id);
  if (!removed) return std::unexpected(to_api_error(removed.error()));
  if (!*removed) return std::unexpected(no_response(id, ""));
  return Json{{"id", id}, {"object", "response"}, {"deleted", true}}.dump();
}

ApiResult<std::string> cancel_response(ServerCore& core, const Exchange& exchange) {
  const auto& id = exchange.params.at("id");
  if (!exchange.caller.tenant) return std::unexpected(no_response(id, ""));
  const auto size = core.store->response_bytes(exchange.caller.tenant->name, id);
  if (!size) return std::unexpected(to_api_error(size.error()));
  if (!*size) return std::unexpected(no_response(id, ""));
  return std::unexpected(
      make_error(400, "[responses] only answers in the background can be cancelled; this one ended"));
}

}  // namespace

ApiResult<void> find_earlier_response(ServerCore& core, const Exchange& exchange, Json& body, ByteBudget::Hold& held) {
  const bool may_store = exchange.caller.tenant->settings().may_store;
  const auto store = body.find("store");
  if (store == body.end() || store->is_null())
    body["store"] = may_store;
  else if (*store == true && !may_store)
    return wrong_field("store",
                       "true is given, and nothing is kept for this tenant (may_store): send the whole conversation");
  const auto earlier = body.find("previous_response_id");
  if (earlier == body.end() || !earlier->is_string()) return {};
  // The body of a batch line is not counted in a budget, because it is small compared with a file of lines.
  const auto n_more = std::max<std::uint64_t>(1, exchange.request.held.size());
  ZRT_TRY(auto kept, find_kept(core, exchange, earlier->get<std::string>(), "previous_response_id", held, n_more));
  Json items = std::move(kept["input"]);
  for (Json& item : kept["response"]["output"]) items.push_back(std::move(item));
  Json& input = body["input"];
  if (input.is_array())
    for (Json& item : input) items.push_back(std::move(item));
  else if (input.is_string())
    items.push_back(Json{{"role", "user"}, {"content", std::move(input)}});
  else
    return wrong_field("input", show(input) + " is given, a text or a list of items wanted");
  input = std::move(items);
  return {};
}

void add_responses_routes(Router& router, ServerCore& core) {
  router.add({"GET", "/v1/responses/{id}", Access::kKey, false, answering(core, show_response)});
  router.add({"DELETE", "/v1/responses/{id}", Access::kKey, false, answering(core, delete_response)});
  router.add({"GET", "/v1/responses/{id}/input_items", Access::kKey, false, answering(core, show_input)});
  router.add({"POST", "/v1/responses/{id}/cancel", Access::kKey, false, answering(core, cancel_response)});
}

}  // namespace zinc_rt::server
