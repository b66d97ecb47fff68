#include "output/format.h"

#include <algorithm>

#include "base/json_text.h"
#include "output/channel_reader.h"

namespace zinc_rt::output {
namespace {

// Each format follows the chat templates of the models that use it. For example, "hermes" is used by Qwen2.5, Qwen3,
// Hermes and Granite 4, "tags" by Qwen3-Coder, Qwen3.5 and Nemotron 3. docs/agents.md lists all models.
constexpr Opening kHermes[] = {{"<tool_call>", Syntax::kJson, "</tool_call>"}};
constexpr Opening kTags[] = {{"<tool_call>", Syntax::kTags, "</tool_call>"},
                             {"<function=", Syntax::kTags, "</tool_call>", true}};
constexpr Opening kSeed[] = {{"<seed:tool_call>", Syntax::kTags, "</seed:tool_call>"}};
// The parser accepts all openings of a format. When the engine writes a call, it uses the first opening.
constexpr Opening kLlama[] = {{"", Syntax::kJson}, {"<|python_tag|>", Syntax::kJson}};
constexpr Opening kMistralList[] = {{"[TOOL_CALLS]", Syntax::kJson}};
constexpr Opening kMistralNamed[] = {{"[TOOL_CALLS]", Syntax::kNamed}};
constexpr Opening kGemma[] = {{"<|tool_call>", Syntax::kBare, "<tool_call|>"}};
constexpr Opening kFunctionGemma[] = {{"<start_function_call>", Syntax::kBare, "<end_function_call>"}};
constexpr Opening kCohere[] = {{"<|START_ACTION|>", Syntax::kJson, "<|END_ACTION|>"}};
constexpr Opening kGranite[] = {{"<|tool_call|>", Syntax::kJson}, {"<tool_call>", Syntax::kJson}};
constexpr Opening kPhi[] = {{"<|tool_call|>", Syntax::kJson, "<|/tool_call|>"}, {"functools", Syntax::kJson}};
constexpr Opening kDeepSeek[] = {{"<｜tool▁call▁begin｜>", Syntax::kNamed, "<｜tool▁call▁end｜>"}};
constexpr std::string_view kDeepSeekDropped[] = {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"};
constexpr Opening kInvoke[] = {{"<｜DSML｜function_calls>", Syntax::kInvoke, "</｜DSML｜function_calls>"}};

constexpr Opening kGlm[] = {{"<tool_call>", Syntax::kPairs, "</tool_call>"}};
constexpr Opening kGlm4[] = {{"", Syntax::kLine}};
constexpr Opening kNemotron[] = {{"<TOOLCALL>", Syntax::kJson, "</TOOLCALL>"}};
constexpr Opening kHunyuan[] = {{"<tool_calls>", Syntax::kJson, "</tool_calls>"}};
constexpr Opening kLfm2[] = {{"<|tool_call_start|>", Syntax::kPython, "<|tool_call_end|>"}};

constexpr Opening kHarmony[] = {{"<|channel|>", Syntax::kHeader}};
constexpr std::string_view kHarmonyTokens[] = {"<|constrain|>", "<|message|>"};

constexpr std::string_view kObject = "{\"name\": {name}, \"arguments\": {arguments}}";

// Lists all call formats. If a template's output contains the signs of several, the first row counts.
constexpr CallFormat kCalls[] = {
    {.name = "seed",
     .openings = kSeed,
     .in_calls = "<seed:tool_call>\n<function=zrt_probe_name>",
     .body = "\n<function={bare}>\n{arguments}</function>\n",
     .separator = "\n"},
    {.name = "tags",
     .openings = kTags,
     .in_calls = "<function=zrt_probe_name>",
     .body = "\n<function={bare}>\n{arguments}</function>\n",
     .separator = "\n"},
    {.name = "gemma",
     .openings = kGemma,
     .mark = "<|\"|>",
     .in_calls = "<|tool_call>call:zrt_probe_name{",
     .body = "call:{bare}{arguments}"},
    {.name = "functiongemma",
     .openings = kFunctionGemma,
     .mark = "<escape>",
     .in_calls = "<start_function_call>call:zrt_probe_name{",
     .body = "call:{bare}{arguments}"},
    {.name = "mistral_args",
     .openings = kMistralNamed,
     .mark = "[ARGS]",
     .has_short_ids = true,
     .in_calls = "[TOOL_CALLS]zrt_probe_name",
     .body = "{bare}[ARGS]{arguments}"},
    {.name = "mistral",
     .openings = kMistralList,
     .has_short_ids = true,
     .in_calls = "[TOOL_CALLS]",
     .body = kObject,
     .is_list = true,
     .separator = ", "},
    {.name = "dsml",
     .openings = kInvoke,
     .mark = "｜DSML｜",
     .in_calls = "<｜DSML｜invoke name=\"zrt_probe_name\"",
     .body = "<｜DSML｜invoke name=\"{bare}\">\n{arguments}</｜DSML｜invoke>\n",
     .is_list = true,
     .list_open = "\n",
     .list_close = ""},
    {.name = "deepseek_r1",
     .openings = kDeepSeek,
     .mark = "<｜tool▁sep｜>",
     .dropped = kDeepSeekDropped,
     .in_calls = "function<｜tool▁sep｜>zrt_probe_name",
     .body = "function<｜tool▁sep｜>{bare}\n```json\n{arguments}\n```",
     .separator = "\n",
     .first = kDeepSeekDropped[0],
     .last = kDeepSeekDropped[1]},
    {.name = "deepseek",
     .openings = kDeepSeek,
     .mark = "<｜tool▁sep｜>",
     .dropped = kDeepSeekDropped,
     .in_calls = "<｜tool▁sep｜>",
     .body = "{bare}<｜tool▁sep｜>{arguments}",
     .first = kDeepSeekDropped[0],
     .last = kDeepSeekDropped[1]},
    {.name = "glm47", .openings = kGlm, .in_calls = "<tool_call>zrt_probe_name<arg_key>", .body = "{bare}{arguments}"},
    {.name = "glm45",
     .openings = kGlm,
     .gap = "\n",
     .in_calls = "<tool_call>zrt_probe_name\n",
     .body = "{bare}\n{arguments}",
     .separator = "\n"},
    {.name = "nemotron",
     .openings = kNemotron,
     .in_calls = "<TOOLCALL>",
     .in_instructions = "<TOOLCALL>",
     .body = kObject,
     .is_list = true,
     .separator = ", "},
    {.name = "hunyuan",
     .openings = kHunyuan,
     .in_calls = "<tool_calls>[{\"name\": \"zrt_probe_name\"",
     .in_instructions = "<tool_calls>[{",
     .body = kObject,
     .is_list = true,
     .separator = ", "},
    {.name = "lfm2",
     .openings = kLfm2,
     .in_calls = "<|tool_call_start|>",
     .in_instructions = "<|tool_list_start|>",
     .body = "{bare}({arguments})",
     .is_list = true,
     .separator = ", "},
    {.name = "hermes",
     .openings = kHermes,
     .in_calls = "<tool_call>",
     .in_instructions = "<tool_call>",
     .body = "\n{\"name\": {name}, \"arguments\": {arguments}}\n",
     .separator = "\n"},
    {.name = "granite",
     .openings = kGranite,
     .in_calls = "<|tool_call|>[{\"name\": \"zrt_probe_name\", \"arguments\"",
     .in_instructions = "<|tool_call|>",
     .body = kObject,
     .is_list = true,
     .separator = ", "},
    {.name = "phi",
     .openings = kPhi,
     .in_calls = "<|tool_call|>",
     .in_instructions = "functools",
     .body = kObject,
     .is_list = true,
     .separator = ", "},
    {.name = "harmony",
     .openings = kHarmony,
     .tokens = kHarmonyTokens,
     .in_calls = "to=functions.zrt_probe_name",
     .body = "commentary to=functions.{bare} <|constrain|>json<|message|>{arguments}"},
    {.name = "cohere",
     .openings = kCohere,
     .in_calls = "\"tool_name\": \"zrt_probe_name\"",
     .body = "{\"tool_name\": {name}, \"parameters\": {arguments}}",
     .is_list = true,
     .list_open = "[\n    ",
     .list_close = "\n]",
     .separator = ",\n    "},
    {.name = "llama",
     .openings = kLlama,
     .in_calls = "{\"name\": \"zrt_probe_name\", \"parameters\":",
     .body = "{\"name\": {name}, \"parameters\": {arguments}}",
     .separator = "; "},
    {.name = "glm4",
     .openings = kGlm4,
     .in_calls = "zrt_probe_name\n{",
     // "When you call this function, write the arguments as JSON."
     .in_instructions = "在调用上述函数时，请使用 Json 格式表示调用的参数。",
     .body = "{bare}\n{arguments}",
     .separator = "\n"},
};

constexpr ReasoningFormat kReasoning[] = {
    {"think", "<think>", "</think>"},
    {"mistral", "[THINK]", "[/THINK]"},
    {"seed", "<seed:think>", "</seed:think>"},
    {"cohere", "<|START_THINKING|>", "<|END_THINKING|>"},
    {"gemma", "<|channel>", "<channel|>", "thought\n"},
};

// Hunyuan writes the first, ERNIE 4.5 Thinking the second.
constexpr AnswerFrame kFrames[] = {{"<answer>", "</answer>"}, {"<response>", "</response>"}};

using Json = nlohmann::ordered_json;

Json question() {
  return {{"role", "user"}, {"content", "zrt question"}};
}

// Returns a conversation of a question, an answer with calls, and the tool's result.
Json conversation(int n_calls, bool has_object = true) {
  Json answer{{"role", "assistant"}, {"content", ""}};
  for (int i = 0; i < n_calls; ++i) answer["tool_calls"].push_back(probe_call(has_object));
  return Json::array(
      {question(), std::move(answer),
       Json{{"role", "tool"}, {"name", kProbeName}, {"tool_call_id", kProbeCallId}, {"content", "zrt result"}}});
}

// Returns a conversation in which metadata marks an answer as a call.
Json conversation_with_metadata() {
  return Json::array({question(), Json{{"role", "assistant"}, {"metadata", "zrt metadata"}, {"content", "zrt value"}},
                      Json{{"role", "observation"}, {"content", "zrt result"}}});
}

Json conversation_of(const std::string& answer) {
  return Json::array({question(), Json{{"role", "assistant"}, {"content", answer}}, question()});
}

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

const CallFormat* first_of(std::string_view text, std::string_view CallFormat::* sign) {
  const auto it = std::ranges::find_if(
      kCalls, [&](const CallFormat& f) { return !(f.*sign).empty() && text.find(f.*sign) != std::string_view::npos; });
  return it == std::end(kCalls) ? nullptr : &*it;
}

}  // namespace

std::span<const CallFormat> call_formats() {
  return kCalls;
}
std::span<const ReasoningFormat> reasoning_formats() {
  return kReasoning;
}

std::span<const AnswerFrame> answer_frames() {
  return kFrames;
}

bool has_json_arguments(const CallFormat& format) {
  const Syntax syntax = format.openings[0].syntax;
  return syntax == Syntax::kJson || syntax == Syntax::kNamed || syntax == Syntax::kLine || syntax == Syntax::kHeader;
}

std::string call_text(const CallFormat& format, std::string_view name, std::string_view arguments) {
  std::string out(format.body);
  const auto replace = [&](std::string_view mark, std::string_view by) {
    if (const auto at = out.find(mark); at != std::string::npos) out.replace(at, mark.size(), by);
  };
  // The arguments are inserted last, so that a text within the arguments that looks like a placeholder is not replaced.
  replace("{name}", name);
  if (name.size() >= 2) replace("{bare}", name.substr(1, name.size() - 2));
  replace("{arguments}", arguments);
  return out;
}

const CallFormat* find_call_format(std::string_view name) {
  const auto it = std::ranges::find(kCalls, name, &CallFormat::name);
  return it == std::end(kCalls) ? nullptr : &*it;
}

TemplateTraits probe_template(const Render& render_once) {
  // If the first conversation already passes a limit, the others are not tried: each can take as long as a render may.
  std::optional<Error> spent;
  bool is_first = true;
  const Render render_text = [&](const std::string& messages, const std::string& tools) -> Result<std::string> {
    if (spent) return std::unexpected(*spent);
    auto text = render_once(messages, tools);
    if (is_first && !text && text.error().code == StatusCode::kExhausted) spent = text.error();
    is_first = false;
    return text;
  };
  TemplateTraits traits;
  traits.content = probe_content(render_text);
  traits.order = probe_role_order(render_text, traits.content);
  const auto render = [&](Json messages, const char* tools) {
    fit_content(messages, traits.content);
    return render_text(messages.dump(), tools);
  };
  const auto plain = render(Json::array({question()}), ""), with_tools = render(Json::array({question()}), kProbeTools);
  traits.has_channels = plain && has_channels(*plain);
  traits.shows_tools = with_tools && with_tools->contains(kProbeName);
  auto calls = render(conversation(1), kProbeTools);
  auto as_text = render(conversation(1, false), kProbeTools);
  traits.prints_texts = as_text && as_text->contains(kProbeText);
  // A template that prints a text unchanged prints an object in Python's notation, which is not JSON.
  const bool shows_object = calls && calls->contains("zrt value") && !calls->contains(kProbeShown);
  if (!shows_object && as_text && as_text->contains("zrt value")) {
    calls = std::move(as_text);
    traits.takes_objects = false;
  }
  traits.writes_calls = calls && calls->contains("zrt value");
  if (traits.writes_calls) {
    const auto two = render(conversation(2, traits.takes_objects), kProbeTools);
    traits.has_one_call = !two || count_of(*two, "zrt value") == count_of(*calls, "zrt value");

    auto followed = conversation(1, traits.takes_objects);
    followed.push_back({{"role", "user"}, {"content", "zrt next"}});
    const auto next = render(std::move(followed), kProbeTools);
    traits.order.takes_user_after_result = next && next->contains("zrt next");

    // A text that the instructions contain even without a call is no sign of a call, so the common beginning is
    // skipped.
    std::string difference = *calls;
    if (const auto without = render(conversation(0), kProbeTools)) {
      const auto n = std::ranges::mismatch(*without, *calls).in2 - calls->begin();
      // Begin a few bytes earlier, because a marker's first bytes may be equal by chance.
      difference = calls->substr(static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, n - 24)));
    }
    traits.calls = first_of(difference, &CallFormat::in_calls);
  }
  if (traits.calls == nullptr && traits.shows_tools && !traits.writes_calls)
    traits.calls = first_of(*with_tools, &CallFormat::in_instructions);
  if (traits.shows_tools && !traits.writes_calls) {
    const auto text = render(conversation_with_metadata(), kProbeTools);
    traits.has_metadata = text && text->contains("zrt metadata") && text->contains("zrt result");
  }
  if (!traits.shows_tools) traits.calls = nullptr;
  traits.reasoning = &kReasoning[0];
  const auto thought = render(Json::array({question(), Json{{"role", "assistant"},
                                                            {"content", "zrt answer"},
                                                            {"reasoning_content", "zrt thought"},
                                                            {"reasoning", "zrt thought"}}}),
                              "");
  for (const auto& row : kReasoning)
    for (const auto& text : {plain, with_tools, calls, thought})
      if (traits.reasoning == &kReasoning[0] && text && text->contains(row.open) && text->contains(row.close))
        traits.reasoning = &row;
  // A template writes the marks around an earlier answer, or takes them off. Hunyuan A13B's does neither.
  const auto answered = render(conversation_of("zrt answer"), "");
  for (const auto& frame : kFrames) {
    const bool is_written = answered && answered->contains(frame.open) && answered->contains(frame.close);
    const auto framed =
        render(conversation_of(std::string(frame.open) + "\nzrt answer\n" + std::string(frame.close)), "");
    const bool is_taken_off = framed && framed->contains("zrt answer") && !framed->contains(frame.open);
    if (traits.frame == nullptr && (is_written || is_taken_off)) traits.frame = &frame;
  }
  if (traits.frame == nullptr && traits.calls != nullptr && traits.calls->openings.data() == kHunyuan)
    traits.frame = &kFrames[0];
  return traits;
}

}  // namespace zinc_rt::output
