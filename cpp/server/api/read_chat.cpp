// Reads the body of /v1/chat/completions.
#include "base/error.h"
#include "server/api/body_reader.h"

namespace zinc_rt::server {
namespace {

// Reads the prediction: {"type": "content", "content": a text or a list of text parts}.
void read_prediction(BodyReader& r, Request& q) {
  const Json* prediction = r.fields().get("prediction");
  if (prediction == nullptr) return;
  if (!prediction->is_object() || prediction->value("type", Json()) != "content" || !prediction->contains("content"))
    return r.wrong("prediction", show(*prediction) + R"( is given, {"type": "content", "content": ...} wanted)");
  for (const auto& [name, value] : prediction->items())
    if (name != "type" && name != "content") return r.wrong("prediction", "it has no field " + name);
  const auto content = read_content((*prediction)["content"], "user", "prediction.content");
  if (!content) return r.wrong(content.error());
  if (content->is_string()) {
    q.prediction = content->get<std::string>();
    return;
  }
  for (const Json& part : *content) q.prediction += part["text"].get<std::string>();
}

}  // namespace

ApiResult<GenerationCall> parse_chat(const Json& body, const Request& defaults, Ignored ignored) {
  GenerationCall call;
  Request q = defaults;
  BodyReader r(body, ignored, RequestField::kChat);
  read_common(r, RequestField::kChat, call, q);
  read_max_tokens(r, q, {"max_completion_tokens", "max_tokens"}, Request::kAllThatFit, false);
  q.parse_output = true;
  Conversation chat;
  if (const Json* messages = r.fields().get("messages")) {
    if (auto read = read_messages(*messages, ignored))
      chat.messages = std::move(*read);
    else
      r.wrong(read.error());
  } else {
    r.wrong("messages", "it is missing");
  }
  if (const Json* tools = r.fields().get("tools")) {
    if (const auto good = check_tools(*tools); !good)
      r.wrong(good.error());
    else if (!tools->empty())
      chat.tools = *tools;
  }
  read_tool_choice(r, "function", q, chat, call);
  if (const Json* extra = r.fields().get("chat_template_kwargs")) {
    if (extra->is_object())
      chat.variables = *extra;
    else
      r.wrong("chat_template_kwargs", show(*extra) + " is given, an object wanted");
  }
  read_effort(r, "reasoning_effort", chat.variables);
  r.object("reasoning", [&](BodyReader& one) {
    if (r.fields().get("reasoning_effort") != nullptr && one.fields().get("effort") != nullptr)
      one.wrong("effort", "reasoning_effort is given, too");
    read_effort(one, "effort", chat.variables);
    if (const auto enabled = one.boolean("enabled")) chat.variables["enable_thinking"] = *enabled;
    if (const auto exclude = one.boolean("exclude")) call.include_reasoning = !*exclude;
    one.refuse("max_tokens", "max_tokens bounds reasoning and answer together");
  });
  if (q.continue_final_message && q.add_generation_prompt.value_or(false))
    r.wrong("continue_final_message", "it cannot be given with add_generation_prompt");
  r.into(call.echo, r.boolean("echo"));
  if (call.echo) r.wrong("echo", "true is not served for chats");
  read_logprobs(r, call, q);
  read_prediction(r, q);
  r.into(call.include_reasoning, r.boolean("include_reasoning"));
  read_output_format(r, q, call);
  r.refuse("functions", "tools are what took their place", {Json::array()});
  r.refuse("function_call", "tool_choice is what took its place", {"none", "auto"});
  if (const auto many = r.boolean("parallel_tool_calls"); many && !*many) q.max_tool_calls = 1;
  r.refuse("modalities", "the models here write text alone", {Json::array({"text"})});
  r.refuse("audio", "the models here write text alone");
  r.refuse("web_search_options", "this server searches nothing");
  r.refuse("moderation", "this server judges nothing");
  r.refuse("store", "nothing that is said is kept", {false});
  r.refuse("verbosity", "no model here has such a setting", {"medium"});
  r.refuse("prompt_cache_retention", "prefixes are kept in memory while there is room", {"in_memory", "in-memory"});
  r.refuse("prompt_cache_options", "prefixes are kept in memory while there is room");
  read_metadata(r);
  ZRT_CHECK_OK(r.finish());
  q.conversation = std::make_shared<const Conversation>(std::move(chat));
  call.requests.push_back(std::move(q));
  return call;
}

}  // namespace zinc_rt::server
