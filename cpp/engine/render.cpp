// Applies the chat template of a model to messages.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/strict_json.h"
#include "engine/chat_history.h"
#include "engine/model.h"

namespace zinc_rt {
namespace {

// Appended to the content of the last message, so that the prompt can be cut off where it stands in the rendered text.
constexpr std::string_view kEndMark = "<zinc-rt: the prompt ends here>";

bool begins_with_system(const nlohmann::ordered_json& messages) {
  if (messages.empty() || !messages[0].is_object()) return false;
  const auto role = messages[0].find("role");
  return role != messages[0].end() && *role == "system";
}

}  // namespace

Result<std::string> Model::render(const RenderInput& input) const {
  if (!template_) return std::unexpected(template_error_);
  using Json = nlohmann::ordered_json;
  Json context = Json::object();
  const auto add = [&](const char* name, std::string_view text, Json::value_t type) -> Result<Json> {
    auto value = read_any_json(text);
    if (!value || value->type() != type)
      return fail(StatusCode::kInvalidArgument, "[chat_template] {} is not a JSON {}", name,
                  type == Json::value_t::array ? "list" : "object");
    return std::move(*value);
  };
  if (!input.extra.empty()) {
    ZRT_TRY(context, add("extra", input.extra, Json::value_t::object));
  }
  ZRT_TRY(context["messages"], add("messages", input.messages, Json::value_t::array));
  auto& list = context["messages"];
  if (!input.system.empty() && !begins_with_system(list))
    list.insert(list.begin(), Json{{"role", "system"}, {"content", input.system}});
  if (input.continue_final_message) {
    if (list.empty() || !list.back().is_object() || !list.back().contains("content") ||
        !list.back()["content"].is_string())
      return fail(StatusCode::kInvalidArgument,
                  "[request] continue_final_message wants a last message whose content is a text");
    list.back()["content"].get_ref<std::string&>() += kEndMark;
  }
  if (!input.tools.empty()) {
    ZRT_TRY(context["tools"], add("tools", input.tools, Json::value_t::array));
  }
  if (!input.as_they_are)
    fit_history(context["messages"], context.contains("tools") ? &context["tools"] : nullptr, traits_, options_.tools);
  // transformers gives its templates these variables as none where the caller has not set them.
  for (const char* name : {"tools", "documents"})
    if (!context.contains(name)) context[name] = nullptr;
  context["add_generation_prompt"] = input.add_generation_prompt;
  const auto text = [&](std::optional<std::int32_t> id) {
    return id ? std::string(tokenizer_->token_text(*id)) : std::string();
  };
  if (!context.contains("bos_token")) context["bos_token"] = text(tokenizer_->bos_id());
  if (!context.contains("eos_token")) context["eos_token"] = text(tokenizer_->eos_id());
  RenderLimits limits;
  limits.cancel = input.cancel;
  ZRT_TRY(auto rendered, template_->render(std::move(context), limits));
  if (!input.continue_final_message) return rendered;
  const auto end = rendered.rfind(kEndMark);
  if (end == std::string::npos)
    return fail(StatusCode::kInvalidArgument,
                "[request] continue_final_message: the chat template does not write the last message's content as it "
                "is");
  rendered.resize(end);
  return rendered;
}

Status Model::probe_template() {
  const output::CallFormat* own = nullptr;
  if (!options_.tools.empty()) {
    own = output::find_call_format(options_.tools);
    if (own == nullptr || own->name != kOwnTools)
      return fail(StatusCode::kInvalidArgument, "[engine] tools is \"{}\", \"{}\" or nothing wanted", options_.tools,
                  kOwnTools);
  }
  const auto find = [&](std::string_view text) { return tokenizer_->find(text); };
  traits_ = output::probe_template([&](const std::string& messages, const std::string& tools) {
    auto text = render({.messages = messages, .tools = tools, .as_they_are = true});
    return text ? std::optional(std::move(*text)) : std::nullopt;
  });
  formats_ = output::Formats(own != nullptr ? own : traits_.calls, traits_.reasoning, find);
  return {};
}

}  // namespace zinc_rt
