#include "zinc_rt/request_fields.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/output_row.h"

namespace zinc_rt {
namespace {

using R = Request;
using enum RequestField::TakenBy;

constexpr std::uint32_t kOpenAi = kChat | kCompletion | kGenerate, kOllama = kOllamaChat | kOllamaGenerate,
                        kServed = kOpenAi | kMessages | kResponses | kOllama, kSampled = kOpenAi | kPython | kCommand;
constexpr Bounds kAnyInt64 = {static_cast<double>(INT64_MIN), static_cast<double>(INT64_MAX)};
constexpr double kMostTokens = 1 << 24;
constexpr const char *kYesNo = "true or false", *kText = "a text", *kList = "a list", *kObject = "an object",
                     *kTokens = "a whole number, 1 to 16777216";

// Makes the row of a field whose value is stored unchanged in a member of Request.
RequestField set(const char* name, std::uint32_t taken_by, RequestField::Member member, const char* help,
                 Bounds bounds = {}, std::optional<Bounds> of_api = {}) {
  return {.name = name, .taken_by = taken_by, .member = member, .bounds = bounds, .of_api = of_api, .help = help};
}
// Makes the row of a field that each API's reader interprets with its own code.
RequestField own(const char* name, std::uint32_t taken_by, const char* type, const char* help) {
  return {.name = name, .taken_by = taken_by, .type = type, .help = help};
}

std::vector<RequestField> make_rows() {
  return {
      // The following fields are the input: model, messages, tools.
      set("model", kOpenAi | kMessages | kResponses | kPython, &R::model,
          "which model, by name; absent: the first one, or the only one of the folder", {}, Bounds{0, 4096}),
      own("model", kOllama, kText, "the same; `:latest` behind the name is passed over"),
      own("messages", kChat | kMessages | kOllamaChat, kList, "what was said; the model's template writes it"),
      own("prompt", kCompletion, "a text, token ids, or a list of at most 256 of those", "the text to continue"),
      own("prompt", kOllamaGenerate, kText, "a message of the user; with `raw` the text to continue"),
      own("token_ids", kGenerate, "a list of token ids", "the tokens to continue"),
      own("input", kResponses, "a text or a list of items", "what was said"),
      own("instructions", kResponses, kText, "stands before what else the system says"),
      own("previous_response_id", kResponses, kText, "an answer that was kept, with all that was said before it"),
      own("store", kResponses, kYesNo, "keep the answer"),
      own("include", kResponses, kList, "`reasoning.encrypted_content`: reasoning in a form that is sent back"),
      own("system", kMessages, "a text or a list of parts", "what the system says"),
      own("system", kOllamaGenerate, kText, "what the system says"),
      own("raw", kOllamaGenerate, kYesNo, "no template: the prompt goes on as it is"),
      own("tools", kChat | kMessages | kResponses | kOllamaChat | kPython, "a list of functions",
          "through the template; refused where it writes the same prompt without them"),
      own("tool_choice", kChat | kMessages | kResponses, "a word or an object",
          "whether calls may be made, must be, or which; functions that are allowed"),
      own("tool_choice", kPython, kText, "required, or a tool's name: calls must be made"),
      own("parallel_tool_calls", kChat | kResponses, kYesNo, "false: the answer ends behind one call"),
      set("max_tool_calls", kPython, &R::max_tool_calls, "the text ends behind so many calls; 0: no limit"),
      own("max_tool_calls", kResponses, "a whole number, 1 to 1048576",
          "read and not used: it bounds calls that a server runs itself"),
      own("parse_output", kPython, kYesNo, "take answer, reasoning and calls apart; None: where tools are given"),
      own("chat_template_kwargs", kChat | kPython, kObject, "further variables of the template"),
      own("reasoning_effort", kChat, "none, minimal, low, medium, high, xhigh or max",
          "a variable of the template; none also sets `enable_thinking` false"),
      own("reasoning", kResponses, kObject, "`effort`: as `reasoning_effort`"),
      own("reasoning", kChat, kObject,
          "OpenRouter's: `effort` as `reasoning_effort`, `enabled` as `enable_thinking`, `exclude` for no "
          "`include_reasoning`"),
      own("thinking", kMessages, kObject, "`type`: whether the model thinks; `display`: whether that is shown"),
      own("output_config", kMessages, kObject, "`effort`: a variable of the template; `format`: of the answer"),
      own("think", kOllama, "true, false, low, medium or high", "whether the model thinks, or its effort"),
      own("include_reasoning", kChat, kYesNo, "false: the reasoning is not shown"),
      set("add_generation_prompt", kChat | kPython, &R::add_generation_prompt,
          "whether the template opens an answer; absent: yes, unless the last message goes on"),
      set("continue_final_message", kChat | kPython, &R::continue_final_message,
          "the answer goes on with the last message"),

      // The following fields say how the answer is delivered.
      own("stream", kServed, kYesNo, "in events; absent: false, of Ollama's paths true"),
      own("stream_options", kOpenAi | kResponses, kObject,
          "with `stream`: `include_usage` (not of responses), `resumable` (below)"),
      own("service_tier", kOpenAi, "auto, default, flex, priority, interactive, standard or batch",
          "flex: class batch; priority: interactive, if the tenant is"),
      own("service_tier", kResponses, "auto, default, flex or priority", "the same"),
      own("service_tier", kMessages, "auto or standard_only", "it changes nothing"),
      set("qos", kPython, &R::qos, "interactive, standard or batch; None: the tenant's"),
      set("deadline_ms", kOpenAi | kPython, &R::deadline_ms, "it ends by then, counted from the call; 0: none", {},
          Bounds{0, 1e9}),
      set("cache_salt", kOpenAi | kPython, &R::cache_salt,
          "cached prefixes are shared with requests of the same salt alone", {0, 256}),
      set("request_id", kPython, &R::request_id, "its name in the step timeline", {0, 256}),
      set("traceparent", kPython, &R::traceparent, "where it lies in the caller's own trace", {0, 256}),
      set("stream_capacity", kPython, &R::stream_capacity,
          "events that are held for a reader who is behind; None: all"),
      own("keep_alive", kOllama, "seconds, or a duration such as 5m", "0 gives the model back"),

      // The following fields limit lengths.
      set("max_tokens", kPython, &R::max_tokens, "tokens that may be generated"),
      own("max_tokens", kChat, kTokens, "tokens that may be generated; absent: all that the context has room for"),
      own("max_completion_tokens", kChat, kTokens, "the same"),
      own("max_tokens", kCompletion | kGenerate, "a whole number, 0 to 16777216",
          "the same; absent: 16, of generate 128; 0: with `prompt_logprobs` alone"),
      own("max_tokens", kMessages, kTokens, "the same; it must be given"),
      own("max_output_tokens", kResponses, kTokens, "the same; absent: all that the context has room for"),
      own("num_predict", kOllamaOptions, "a whole number, -2 to 16777216",
          "the same; below 1: all that there is room for"),
      own("num_ctx", kOllamaOptions, "a whole number, 1 to 2147483647",
          "refused where it is more than the model's context"),
      set("min_tokens", kOpenAi | kPython, &R::min_tokens, "so many tokens come before it may end", {},
          Bounds{0, kMostTokens}),
      set("stop", kOpenAi | kOllamaOptions | kPython, &R::stop, "the text ends before the first of them", {},
          Bounds{0, 16}),
      own("stop_sequences", kMessages, "a list of at most 16 texts", "the same"),
      set("include_stop_str_in_output", kOpenAi | kPython, &R::include_stop_str_in_output,
          "the text ends behind it instead"),
      set("stop_token_ids", kOpenAi | kPython, &R::stop_token_ids, "they end it, besides the model's own", {0, 1024}),
      set("ignore_eos", kOpenAi | kPython, &R::ignore_eos, "go on past the model's end tokens"),

      // The following fields are for sampling.
      set("temperature", kSampled | kMessages | kResponses, &R::temperature, "how freely it draws; 0: greedy", {0, 100},
          Bounds{0, 2}),
      set("temperature", kOllamaOptions, &R::temperature, "the same", {0, 100}),
      set("top_k", kSampled | kMessages | kOllamaOptions, &R::top_k, "keep the k most likely; 0: off", {},
          Bounds{-1, INT32_MAX}),
      set("top_p", kSampled | kMessages | kResponses | kOllamaOptions, &R::top_p,
          "keep the most likely that reach this sum; 1: off", {0, 1}),
      set("min_p", kSampled | kOllamaOptions, &R::min_p, "drop those below this part of the most likely; 0: off",
          {0, 1}),
      set("typical_p", kSampled | kOllamaOptions, &R::typical_p, "keep those of usual surprise up to this sum; 1: off",
          {0, 1}),
      set("repetition_penalty", kSampled, &R::repetition_penalty,
          "above 1: tokens that are there already are less likely; 1: off", {0.01, 100}),
      set("repeat_penalty", kOllamaOptions, &R::repetition_penalty, "the same", {0.01, 100}),
      set("presence_penalty", kSampled | kOllamaOptions, &R::presence_penalty, "taken from generated tokens; 0: off",
          {-100, 100}, Bounds{-2, 2}),
      set("frequency_penalty", kSampled | kOllamaOptions, &R::frequency_penalty,
          "taken from generated tokens, each time they came; 0: off", {-100, 100}, Bounds{-2, 2}),
      set("logit_bias", kOpenAi | kPython, &R::logit_bias, "added to the logits of tokens", {0, 1024}),
      own("logits_processor", kPython, "a function, or a list", "changes the logits before each pick"),
      set("seed", kOpenAi | kResponses | kOllamaOptions | kPython, &R::seed,
          "same seed, same tokens; absent: drawn at random", {}, kAnyInt64),
      set("n", kOpenAi | kPython, &R::n, "answers of the prompt", {1, 128}),
      own("best_of", kCompletion, "a whole number, 1 to 128", "the same number as `n`"),
      own("options", kOllama, kObject, "how tokens are picked, and how many: the rows of options"),

      // The following fields set the output format.
      own("response_format", kChat | kCompletion | kPython, kObject,
          "text, json_object, json_schema or structural_tag"),
      own("structured_outputs", kChat | kCompletion, kObject,
          "`json`, `regex`, `choice`, `grammar`, `json_object` or `structural_tag`"),
      own("guided_json", kChat | kCompletion, "a JSON schema", "JSON of this schema"),
      own("json_schema", kChat | kCompletion, "a JSON schema", "the same"),
      own("guided_regex", kChat | kCompletion, kText, "what this expression matches"),
      own("regex", kChat | kCompletion | kPython, kText, "what this expression matches"),
      own("guided_choice", kChat | kCompletion, "a list of texts", "one of these"),
      own("choice", kChat | kCompletion | kPython, "a list of texts", "one of these"),
      own("guided_grammar", kChat | kCompletion, kText, "a grammar in llama.cpp's notation"),
      own("grammar", kChat | kCompletion | kPython, kText, "a grammar in llama.cpp's notation"),
      own("text", kResponses, kObject, "`format`: text, json_object or json_schema"),
      own("format", kOllama, "json, or a JSON schema", "JSON, or JSON of this schema"),
      set("skip_special_tokens", kOpenAi | kPython, &R::skip_special_tokens, "false: special tokens are text too"),

      // The following fields request extra output, such as log probabilities.
      own("logprobs", kChat | kOllama, kYesNo, "of each token"),
      own("top_logprobs", kChat | kOllama, "a whole number, 0 to 20", "with `logprobs`: of so many of the most likely"),
      own("logprobs", kCompletion, "a whole number, 0 to 20", "of each token and of so many of the most likely"),
      set("logprobs", kGenerate | kPython, &R::logprobs, "of each token and of so many of the most likely; 0: none",
          {0, kMostLogprobs}, Bounds{0, 20}),
      set("prompt_logprobs", kOpenAi | kPython, &R::prompt_logprobs, "of the prompt's tokens; not streamed", {0, 20}),
      own("echo", kChat | kCompletion, kYesNo, "true: the answer begins with the prompt; chats take only false"),
      own("return_token_ids", kOpenAi, kYesNo, "ids besides the text"),
      set("speculate", kOpenAi | kPython, &R::speculate,
          "tokens that a step may guess: off, 1 to 32, or auto: as many as save time. No token changes", {},
          Bounds{0, 8}),
      own("prediction", kChat, kObject, "`content`: a text that the answer may be like, whose tokens are guessed"),
      set("prediction", kPython, &R::prediction, "a text that the answer may be like, whose tokens are guessed", {}),
      set("prediction_token_ids", kPython, &R::prediction_token_ids, "the same as tokens", {}),
      set("return_logits_hash", kOpenAi | kPython, &R::return_logits_hash,
          "a hash of the logits of each token (below)"),
      own("timings", kOpenAi, kYesNo, "how long its parts took"),

      // The following fields are names for the caller's own records.
      own("user", kOpenAi | kResponses, "a text of at most 1024 bytes", "read, checked and not used"),
      own("safety_identifier", kOpenAi | kResponses, "a text of at most 1024 bytes", "read, checked and not used"),
      own("prompt_cache_key", kOpenAi | kResponses, "a text of at most 1024 bytes", "read, checked and not used"),
      own("metadata", kChat | kMessages | kResponses, "an object of at most 16 texts",
          "read, checked and not used; keys have at most 64 characters, texts 512"),
  };
}

struct Words {
  const RequestField& field;

  std::string operator()(std::monostate) const { return field.type; }
  std::string operator()(float R::*) const { return numbers(""); }
  std::string operator()(double R::*) const { return numbers(""); }
  std::string operator()(std::uint32_t R::*) const { return numbers("a whole number, "); }
  std::string operator()(std::optional<std::uint32_t> R::*) const { return numbers("a whole number, "); }
  std::string operator()(std::optional<std::uint64_t> R::*) const { return "a whole number of 64 bits"; }
  std::string operator()(bool R::*) const { return kYesNo; }
  std::string operator()(std::optional<bool> R::*) const { return kYesNo; }
  std::string operator()(std::string R::*) const { return fmt::format("a text of at most {} bytes", most()); }
  std::string operator()(std::vector<std::string> R::*) const {
    return fmt::format("a text, or a list of at most {}", most());
  }
  std::string operator()(std::vector<std::int32_t> R::*) const {
    return fmt::format("a list of at most {} token ids", most());
  }
  std::string operator()(std::map<std::int32_t, float> R::*) const {
    return fmt::format("an object: at most {} token ids, -100 to 100 each", most());
  }

 private:
  double most() const { return field.api_bounds().most; }
  std::string numbers(const char* of) const { return fmt::format("{}{} to {}", of, field.api_bounds().least, most()); }
};

}  // namespace

std::span<const RequestField> request_fields() {
  static const std::vector<RequestField> rows = make_rows();
  return rows;
}

std::string wanted_value(const RequestField& field) {
  return std::visit(Words{field}, field.member);
}

std::string taker_names(std::uint32_t taken_by) {
  static constexpr std::pair<std::uint32_t, const char*> kNames[] = {{kChat, "chat"},
                                                                     {kCompletion, "completions"},
                                                                     {kGenerate, "generate"},
                                                                     {kMessages, "messages"},
                                                                     {kResponses, "responses"},
                                                                     {kOllamaChat, "api/chat"},
                                                                     {kOllamaGenerate, "api/generate"},
                                                                     {kOllamaOptions, "options"},
                                                                     {kPython, "Python"},
                                                                     {kCommand, "commands"}};
  std::string names;
  for (const auto& [bit, name] : kNames)
    if ((taken_by & bit) != 0) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

}  // namespace zinc_rt
