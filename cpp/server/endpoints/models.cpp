// Handles /v1/models, loading and unloading of models, /tokenize, /detokenize and /apply-template.
#include <fmt/format.h>

#include "base/conversation.h"
#include "base/error.h"
#include "server/answers/model_answers.h"
#include "server/answers/model_options.h"
#include "server/api/generation_call.h"
#include "server/core.h"
#include "server/incoming.h"
#include "zinc_rt/version.h"

namespace zinc_rt::server {
namespace {

Json describe(const ServedModel& model) {
  return describe_model({model.id, model.created_s, model.max_context, model.n_bad_logits}, model.card, model.memory);
}

// Describes a model that is loaded when a request names it. All other properties of the model would have to be read
// from its file.
Json describe_offered(const ServerCore& core, const OfferedModel& model) {
  return {{"id", model.id},
          {"object", "model"},
          {"created", model.created_s},
          {"owned_by", "zinc_rt"},
          {"aliases", model.aliases},
          {"file_bytes", model.bytes},
          {"state", core.on_demand.is_loading(model.id) ? "loading" : "not_loaded"}};
}

// Reads the prompt of a body, which is a text or a chat's messages.
ApiResult<Request> read_prompt(ServerCore& core, Fields& fields, const ServedModel& model) {
  ZRT_TRY(auto prompt, fields.get_string("prompt", 64u << 20));
  ZRT_TRY(auto content, fields.get_string("content", 64u << 20));
  const Json* messages = fields.get("messages");
  const Json* tools = fields.get("tools");
  const Json* variables = fields.get("chat_template_kwargs");
  ZRT_TRY(const auto add_prompt, fields.get_bool("add_generation_prompt"));
  ZRT_TRY(const auto continues, fields.get_bool("continue_final_message"));
  const bool goes_on = continues.value_or(false);
  if (goes_on && add_prompt.value_or(false))
    return fields.wrong("continue_final_message", "it cannot be given with add_generation_prompt");
  if (prompt.has_value() + content.has_value() + (messages != nullptr) != 1)
    return std::unexpected(make_error(400, "[request] just one of prompt, content and messages wanted", "prompt"));
  Request request;
  request.model = model.engine_name;
  if (prompt || content) {
    request.prompt = prompt ? std::move(prompt) : std::move(content);
    return request;
  }
  Conversation chat;
  ZRT_TRY(chat.messages, read_messages(*messages));
  if (tools != nullptr) ZRT_CHECK_OK(check_tools(*tools));
  if (tools != nullptr && !tools->empty()) chat.tools = *tools;
  if (variables != nullptr && !variables->is_object()) return fields.wrong("chat_template_kwargs", "an object wanted");
  if (variables != nullptr) chat.variables = *variables;
  ZRT_CHECK_OK(check_tools_are_read(core, model, chat));
  request.conversation = std::make_shared<const Conversation>(std::move(chat));
  request.add_generation_prompt = add_prompt;
  request.continue_final_message = goes_on;
  return request;
}

// Returns the prompt that the template renders from the request's messages.
ApiResult<std::string> written(ServerCore& core, const Request& request) {
  auto text = core.engine.apply_template(request);
  if (text) return std::move(*text);
  auto error = to_api_error(text.error());
  error.param = "messages";
  return std::unexpected(std::move(error));
}

// Returns the tokens of a prompt. Unless the request says otherwise, they include the special tokens that a completion
// or a chat with this prompt is charged for.
ApiResult<std::vector<std::int32_t>> tokens_of(ServerCore& core, Request request, std::optional<bool> special) {
  const bool is_chat = request.conversation != nullptr;
  auto found = core.engine.prompt_tokens(std::move(request), special);
  if (found) return std::move(*found);
  auto error = to_api_error(found.error());
  error.param = is_chat ? "messages" : "prompt";
  return std::unexpected(std::move(error));
}

ApiResult<std::string> tokenize(ServerCore& core, Fields& fields, const ServedModel& model) {
  ZRT_TRY(auto request, read_prompt(core, fields, model));
  ZRT_TRY(auto special, fields.get_bool("add_special_tokens"));
  ZRT_TRY(const auto special_too, fields.get_bool("add_special"));
  if (!special) special = special_too;
  ZRT_TRY(const auto strings, fields.get_bool("return_token_strs"));
  ZRT_CHECK_OK(fields.expect_no_others());
  ZRT_TRY(const auto ids, tokens_of(core, std::move(request), special));
  Json out{{"count", ids.size()}, {"max_model_len", model.max_context}, {"tokens", ids}};
  if (strings.value_or(false)) {
    auto& list = out["token_strs"] = Json::array();
    for (const auto id : ids) list.push_back(core.engine.token_bytes(id, model.engine_name));
  }
  return as_text(out);
}

ApiResult<std::string> detokenize(ServerCore& core, Fields& fields, const ServedModel& model) {
  ZRT_TRY(const auto ids, fields.get_ids("tokens", 1 << 22));
  if (!ids) return fields.wrong("tokens", "it is missing");
  ZRT_CHECK_OK(fields.expect_no_others());
  const auto text = core.engine.detokenize(*ids, false, model.engine_name);
  if (!text) {
    auto error = to_api_error(text.error());
    error.param = "tokens";
    return std::unexpected(std::move(error));
  }
  return as_text(Json{{"prompt", *text}, {"content", *text}});
}

// Returns words of the tokenizer, for clients without a tokenizer of their own, such as lm-eval.
Json tokenizer_words(ServerCore& core, const ServedModel& model) {
  const ModelCard::TokenizerCard& tokenizer = model.card.tokenizer;
  const auto word = [&](const std::optional<std::int32_t>& id) {
    return id ? Json(core.engine.token_bytes(*id, model.engine_name)) : Json();
  };
  const auto text = core.engine.chat_template(model.engine_name);
  return {{"bos_token", word(tokenizer.bos_token_id)},
          {"eos_token", word(tokenizer.eos_token_id)},
          {"pad_token", word(tokenizer.pad_token_id)},
          {"chat_template", text.empty() ? Json() : Json(text)}};
}
ApiResult<std::string> tokenizer_info(ServerCore& core, Fields&, const ServedModel& model) {
  return as_text(tokenizer_words(core, model));
}

ApiResult<std::string> list_models(ServerCore& core, const Exchange&) {
  Json list = Json::array();
  for (const auto& model : core.models.list()) {
    list.push_back(describe(model));
    for (const auto& alias : model.aliases) {
      list.push_back(list.back());
      list.back()["id"] = alias;
      list.back()["root"] = model.id;
    }
  }
  for (const auto& model : core.on_demand.not_loaded()) list.push_back(describe_offered(core, model));
  return Json{{"object", "list"}, {"data", std::move(list)}}.dump();
}

// Returns llama.cpp's /props: context length, slots and template of the first model. llama.cpp's clients request /props
// first.
ApiResult<std::string> props(ServerCore& core, Fields&, const ServedModel& model) {
  Json out = tokenizer_words(core, model);
  out["default_generation_settings"] = {{"n_ctx", model.max_context}};
  out["total_slots"] = model.memory.slots_of_all_devices();
  out["model_alias"] = model.id;
  out["build_info"] = fmt::format("zinc_rt {}", kVersion);
  return as_text(out);
}

ApiResult<std::string> apply_template(ServerCore& core, Fields& fields, const ServedModel& model) {
  if (fields.get("messages") == nullptr) return fields.wrong("messages", "it is missing");
  ZRT_TRY(const auto request, read_prompt(core, fields, model));
  ZRT_CHECK_OK(fields.expect_no_others());
  if (request.prompt) return as_text(Json{{"prompt", *request.prompt}});
  ZRT_TRY(const auto text, written(core, request));
  return as_text(Json{{"prompt", text}});
}

ApiResult<std::string> load(ServerCore& core, const Exchange& exchange) {
  ZRT_TRY(const auto body, read_object(exchange.request));
  Fields fields(body);
  ModelSpec spec;
  spec.options.queue_cap = kQueueCap;
  ZRT_TRY(const auto path, fields.get_string("path", 4096));
  if (!path) return fields.wrong("path", "it is missing");
  ZRT_TRY(spec.path, core.model_folders.resolve(*path));
  ZRT_TRY(const auto id, fields.get_string("id", 256));
  spec.id = id ? *id : Models::default_id(*path);
  if (!is_good_model_id(spec.id))
    return fields.wrong("id", show(spec.id) + " is given, text of 1 to 256 bytes without control characters wanted");
  ZRT_CHECK_OK(read_model_options(fields, spec.options));
  if (!spec.options.draft_model.empty() && spec.options.draft_model != kOwnMtpBlock) {
    ZRT_TRY(spec.options.draft_model, core.model_folders.resolve(spec.options.draft_model, "draft_model"));
  }
  ZRT_CHECK_OK(fields.expect_no_others());
  if (core.is_draining) return std::unexpected(shutting_down());
  ZRT_CHECK_OK(core.models.load(spec, LoadedBy::kAdmin));
  ZRT_TRY(const auto loaded, core.models.find(spec.id));
  return describe(loaded).dump();
}

ApiResult<std::string> unload(ServerCore& core, const Exchange& exchange) {
  ZRT_TRY(const auto body, read_object(exchange.request));
  Fields fields(body);
  ZRT_TRY(const auto id, fields.get_string("id", 256));
  if (!id || id->empty()) return fields.wrong("id", "it is missing");
  ZRT_CHECK_OK(fields.expect_no_others());
  ZRT_CHECK_OK(core.models.unload(*id));
  return Json{{"id", *id}, {"unloaded", true}}.dump();
}

// Describes a model. If the model is not loaded, it stays so.
ApiResult<std::string> show_model(ServerCore& core, const Exchange& exchange) {
  const auto& name = exchange.params.at("id");
  if (const auto model = core.models.find(name)) return describe(*model).dump();
  ZRT_TRY(const auto offered, core.on_demand.find_offered(name));
  if (const auto model = core.models.find(offered.id)) return describe(*model).dump();
  return describe_offered(core, offered).dump();
}

using Work = ApiResult<std::string> (*)(ServerCore&, const Exchange&);
using WorkOnModel = ApiResult<std::string> (*)(ServerCore&, Fields&, const ServedModel&);

// Runs `work` on the model that the body names; without a body, on the first model.
std::function<void(Exchange&)> answering_for_model(ServerCore& core, WorkOnModel work) {
  return [&core, work](Exchange& exchange) {
    auto body = exchange.request.method == "POST" ? read_object(exchange.request) : ApiResult<Json>(Json::object());
    if (!body) return answer(core, exchange, body.error());
    const auto name = Fields(*body).get_string("model");
    if (!name) return answer(core, exchange, name.error());
    find_model(core, exchange, name->value_or(""),
               [&core, work, body = std::move(*body)](Exchange& held, const ApiResult<ServedModel>& model) {
                 if (!model) return answer(core, held, model.error());
                 Fields fields(body);
                 fields.get("model");
                 answer_with(core, held, work(core, fields, *model));
               });
  };
}

// Runs the handler on the slow queue, so that other requests do not wait for it.
std::function<void(Exchange&)> answering_slowly(ServerCore& core, Work work) {
  return [&core, work](Exchange& exchange) {
    core.slow.post(
        [&core, work, held = std::make_shared<Exchange>(std::move(exchange))] { answering(core, work)(*held); });
  };
}

}  // namespace

void add_model_routes(Router& router, ServerCore& core) {
  for (const char* path : {"/v1/models", "/models"})  // llama.cpp's clients use the second
    router.add({"GET", path, Access::kKey, false, answering(core, list_models)});
  router.add({"GET", "/props", Access::kKey, false, answering_for_model(core, props)});
  router.add({"POST", "/v1/models/load", Access::kAdmin, false, answering_slowly(core, load)});
  router.add({"POST", "/v1/models/unload", Access::kAdmin, false, answering_slowly(core, unload)});
  router.add({"GET", "/v1/models/{id*}", Access::kKey, false, answering(core, show_model)});
  router.add({"GET", "/tokenizer_info", Access::kKey, false, answering_for_model(core, tokenizer_info)});
  router.add({"POST", "/tokenize", Access::kKey, false, answering_for_model(core, tokenize)});
  router.add({"POST", "/detokenize", Access::kKey, false, answering_for_model(core, detokenize)});
  router.add({"POST", "/apply-template", Access::kKey, false, answering_for_model(core, apply_template)});
}

}  // namespace zinc_rt::server
