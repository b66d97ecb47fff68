#include "server/answers/model_answers.h"

#include <fmt/format.h>

#include "server/api/request_checks.h"

namespace zinc_rt::server {
namespace {

// reads_tools() tests a template with these messages and tools.
constexpr std::string_view kProbeMessages = R"([{"role":"user","content":"a"}])";
constexpr std::string_view kProbeTools =
    R"([{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{}}}}])";

}  // namespace

Json describe_model(const ShownModel& model, const ModelCard& card, const ModelMemory& memory) {
  Json out{{"id", model.id},
           {"object", "model"},
           {"created", model.created_s},
           {"owned_by", "zinc_rt"},
           {"max_model_len", model.max_context}};
  out.update(Json::parse(to_json(card, CardDetail::kListed)));
  if (card.tool_format.empty()) out["tool_format"] = Json();
  out.update(Json::parse(to_json(memory, CardDetail::kListed)));
  out["capabilities"] = {capability_of(card)};  // the kind of requests that the model accepts
  out["health"] = {{"status", model.n_bad_logits == 0 ? "ok" : "bad_logits"}, {"bad_logits", model.n_bad_logits}};
  out["default_sampling"] = {{"temperature", 1}, {"top_p", 1}, {"top_k", 0}, {"min_p", 0}, {"repetition_penalty", 1}};
  out["state"] = "loaded";
  return out;
}

bool reads_tools(const Engine& engine, const std::string& engine_model, const std::string& variables) {
  const auto without = engine.apply_template(kProbeMessages, {}, true, variables, engine_model);
  const auto with = engine.apply_template(kProbeMessages, kProbeTools, true, variables, engine_model);
  return !without || !with || *without != *with;
}

ApiError tools_unread(const std::string& id) {
  return wrong_field("tools", fmt::format("the chat template of \"{}\" writes the same prompt with them and without; "
                                          "this model knows none",
                                          id))
      .error();
}

}  // namespace zinc_rt::server
