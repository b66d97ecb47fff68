// Applies a model's chat template to messages.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/conversation.h"
#include "base/error.h"
#include "engine/chat_history.h"
#include "engine/model.h"

namespace zinc_rt {
namespace {

// render() appends this text to the last message's content. The rendered text is then cut off where it stands.
constexpr std::string_view kEndMark = "<zinc-rt: the prompt ends here>";

// Templates build token names from roles, as in '<|' + message.role + '|>'. A role that is not in this list is marked
// as plain text, so that a client cannot forge such a token.
constexpr std::string_view kRoles[] = {"system",   "developer",   "user",    "assistant", "tool",
                                       "function", "observation", "ipython", "model"};

bool begins_with_system(const nlohmann::ordered_json& messages) {
  if (messages.empty() || !messages[0].is_object()) return false;
  const auto role = messages[0].find("role");
  return role != messages[0].end() && *role == "system";
}

}  // namespace

Result<MarkedText> Model::render(Conversation chat, const RenderOptions& options) const {
  ZRT_TRY(const NamedTemplate* const own, templates_.get(!chat.tools.empty()));
  ZRT_TRY(auto text, render_with(*own, std::move(chat), options));
  if (text.empty() && !options.continue_final_message)
    return fail(StatusCode::kInvalidArgument,
                "[chat_template] the template writes nothing for these messages; give a prompt instead");
  return text;
}

OutsideText Model::outside_of(const MarkedText& text) const {
  if (options_.control_tokens_in_text) return {};
  return {.spans = text.marks(), .allowed = markers_};
}

std::string Model::template_text() const {
  const auto* chat = templates_.find(false);
  return chat == nullptr ? std::string() : chat->text;
}

Result<MarkedText> Model::render_with(const NamedTemplate& chat, Conversation conversation,
                                      const RenderOptions& options) const {
  using Json = nlohmann::ordered_json;
  Json context = std::move(conversation.variables);
  auto& list = context["messages"] = std::move(conversation.messages);
  if (!options.system.empty() && !begins_with_system(list))
    list.insert(list.begin(), Json{{"role", "system"}, {"content", options.system}});
  if (options.continue_final_message) {
    std::string* end = nullptr;
    if (!list.empty() && list.back().is_object() && list.back().contains("content"))
      end = output::end_of_content(list.back()["content"]);
    if (end == nullptr)
      return fail({StatusCode::kInvalidArgument, "continue_final_message"},
                  "[request] continue_final_message wants a last message whose content is a text");
    *end += kEndMark;
  }
  if (!conversation.tools.is_null()) context["tools"] = std::move(conversation.tools);
  if (!options.is_probe)
    ZRT_CHECK_OK(fit_history(context["messages"], context.contains("tools") ? &context["tools"] : nullptr, chat.traits,
                             options_.tools));
  // transformers sets these variables to None if the caller has not set them.
  for (const char* name : {"tools", "documents"})
    if (!context.contains(name)) context[name] = nullptr;
  context["add_generation_prompt"] = options.add_generation_prompt;
  const auto text = [&](std::optional<std::int32_t> id) {
    return id ? std::string(tokenizer_->token_text(*id)) : std::string();
  };
  Json own = Json::object();
  if (!context.contains("bos_token")) own["bos_token"] = text(tokenizer_->bos_id());
  if (!context.contains("eos_token")) own["eos_token"] = text(tokenizer_->eos_id());
  RenderLimits limits;
  limits.cancel = options.cancel;
  ZRT_TRY(auto rendered, chat.parsed->render_marked(std::move(context), std::move(own), {"role", kRoles}, limits));
  if (!options.continue_final_message) return rendered;
  const auto end = rendered.text().rfind(kEndMark);
  if (end == std::string::npos)
    return fail({StatusCode::kInvalidArgument, "continue_final_message"},
                "[request] continue_final_message: the chat template does not write the last message's content as it "
                "is");
  rendered.truncate(end);
  return rendered;
}

Status Model::probe_templates() {
  const output::CallFormat* own = nullptr;
  if (!options_.tools.empty()) {
    own = output::find_call_format(options_.tools);
    if (own == nullptr || own->name != kOwnTools)
      return fail(StatusCode::kInvalidArgument, "[engine] tools is \"{}\", \"{}\" or nothing wanted", options_.tools,
                  kOwnTools);
  }
  const auto find = [&](std::string_view text) { return tokenizer_->find(text); };
  for (NamedTemplate& chat : templates_.all()) {
    if (!chat.parsed) continue;
    const auto render = [&](const std::string& messages, const std::string& tools) -> Result<std::string> {
      ZRT_TRY(auto probe, read_conversation(messages, tools, {}));
      ZRT_TRY(auto text, render_with(chat, std::move(probe), {.is_probe = true}));
      return text.take_text();
    };
    chat.traits = output::probe_template(render);
  }
  // For requests with tools the template with tools renders calls. The template without tools renders everything else.
  const auto traits = [&](bool has_tools) {
    const auto* chat = templates_.find(has_tools);
    return chat != nullptr ? chat->traits : output::TemplateTraits();
  };
  const auto plain = traits(false), with_tools = traits(true);
  const auto* reasoning = plain.reasoning != nullptr ? plain.reasoning : with_tools.reasoning;
  formats_ = output::Formats(own != nullptr ? own : with_tools.calls,
                             reasoning != nullptr ? reasoning : &output::reasoning_formats()[0], find,
                             plain.has_channels, plain.frame != nullptr ? plain.frame : with_tools.frame);
  markers_ = formats_.token_ids();
  std::erase_if(markers_, [&](std::int32_t id) { return tokenizer_->is_end_of_generation(id); });
  return {};
}

}  // namespace zinc_rt
