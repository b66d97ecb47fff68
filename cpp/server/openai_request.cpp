#include "server/openai_request.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "server/reasoning.h"

namespace zinc_rt::server {
namespace {

constexpr std::int64_t kMaxTokens = 1 << 24;
constexpr std::size_t kMaxPrompts = 256, kMaxMessages = 8192, kMaxTools = 512, kMaxBias = 1024, kMaxIds = 1 << 22;

// Reads a body's fields one after the other; the first complaint stays and ends it.
class Reader {
 public:
  explicit Reader(const Json& body, std::string prefix = {}) : fields_(body, std::move(prefix)) {}

  bool is_good() const { return !error_; }
  ApiError error() const { return *error_; }
  Fields& fields() { return fields_; }

  // The value, if the field is there and nothing was wrong so far.
  template <class T>
  std::optional<T> take(ApiResult<std::optional<T>> value) {
    if (error_) return std::nullopt;
    if (value) return std::move(*value);
    error_ = std::move(value.error());
    return std::nullopt;
  }
  std::optional<bool> boolean(const char* name) { return take(fields_.get_bool(name)); }
  std::optional<double> number(const char* name, double low, double high) {
    return take(fields_.get_number(name, low, high));
  }
  std::optional<std::int64_t> integer(const char* name, std::int64_t low, std::int64_t high) {
    return take(fields_.get_int(name, low, high));
  }
  std::optional<std::string> string(const char* name, std::size_t max_bytes) {
    return take(fields_.get_string(name, max_bytes));
  }
  template <class Out>
  void into(Out& out, std::optional<double> value) {
    if (value) out = static_cast<Out>(*value);
  }
  template <class Out>
  void into(Out& out, std::optional<std::int64_t> value) {
    if (value) out = static_cast<Out>(*value);
  }
  void into(bool& out, std::optional<bool> value) {
    if (value) out = *value;
  }
  void into(std::string& out, std::optional<std::string> value) {
    if (value) out = std::move(*value);
  }
  void wrong(const char* name, const std::string& what) {
    if (!error_) error_ = fields_.wrong(name, what).error();
  }
  void wrong(const ApiError& error) {
    if (!error_) error_ = error;
  }
  // A field of the API that this server has not; null and values that ask for nothing may be given.
  void refuse(const char* name, const char* why, std::initializer_list<Json> harmless = {}) {
    const Json* value = fields_.get(name);
    if (value == nullptr) return;
    for (const Json& good : harmless)
      if (*value == good) return;
    wrong(name, fmt::format("{} is not served: {}", show(*value), why));
  }
  ApiResult<void> finish() {
    if (!error_)
      if (const auto others = fields_.expect_no_others(); !others) error_ = others.error();
    if (error_) return std::unexpected(*error_);
    return {};
  }

 private:
  Fields fields_;
  std::optional<ApiError> error_;
};

void read_stop(Reader& r, Request& request) {
  const Json* stop = r.fields().get("stop");
  if (stop == nullptr) return;
  const auto add = [&](const Json& one) {
    if (one.is_string() && !one.get_ref<const std::string&>().empty())
      request.stop.push_back(one.get<std::string>());
    else
      r.wrong("stop", show(one) + " is given, a text or a list of texts that are not empty wanted");
  };
  if (!stop->is_array()) return add(*stop);
  if (stop->size() > 16) return r.wrong("stop", fmt::format("{} entries, at most 16 allowed", stop->size()));
  for (const Json& one : *stop) add(one);
}

void read_bias(Reader& r, Request& request) {
  const Json* bias = r.fields().get("logit_bias");
  if (bias == nullptr) return;
  if (!bias->is_object() || bias->size() > kMaxBias)
    return r.wrong("logit_bias",
                   fmt::format("{} is given, an object of at most {} token ids wanted", show(*bias), kMaxBias));
  for (const auto& [key, value] : bias->items()) {
    const bool is_id = !key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == std::string::npos &&
                       (key.size() == 1 || key[0] != '0');  // else "5" and "05" would be one token, given twice
    if (!is_id) return r.wrong("logit_bias", fmt::format("{} is no token id", show(key)));
    if (!value.is_number() || !(value >= -100 && value <= 100))
      return r.wrong("logit_bias", fmt::format("{} for token {}, -100 to 100 allowed", show(value), key));
    request.logit_bias[std::stoi(key)] = value.get<float>();
  }
}

// What all three have.
void read_common(Reader& r, GenerationCall& call, Request& q) {
  r.into(q.model, r.string("model", 4096));
  r.into(call.stream, r.boolean("stream"));
  if (const Json* options = r.fields().get("stream_options")) {
    if (!options->is_object()) return r.wrong("stream_options", show(*options) + " is given, an object wanted");
    if (!call.stream) return r.wrong("stream_options", "only with \"stream\": true");
    Reader inner(*options, "stream_options.");
    inner.into(call.include_usage, inner.boolean("include_usage"));
    inner.into(call.resumable, inner.boolean("resumable"));
    inner.refuse("include_obfuscation", "chunks are not padded", {false});
    if (const auto done = inner.finish(); !done) r.wrong(done.error());
  }
  r.into(q.temperature, r.number("temperature", 0, 2));
  if (q.temperature > 0 && q.temperature < 1e-4f) q.temperature = 0;
  r.into(q.top_p, r.number("top_p", 0, 1));
  if (const auto k = r.integer("top_k", -1, INT32_MAX)) q.top_k = *k < 0 ? 0 : static_cast<std::uint32_t>(*k);
  r.into(q.min_p, r.number("min_p", 0, 1));
  r.into(q.typical_p, r.number("typical_p", 0, 1));
  r.into(q.repetition_penalty, r.number("repetition_penalty", 0.01, 100));
  r.into(q.presence_penalty, r.number("presence_penalty", -2, 2));
  r.into(q.frequency_penalty, r.number("frequency_penalty", -2, 2));
  read_bias(r, q);
  if (const auto seed = r.integer("seed", INT64_MIN, INT64_MAX)) q.seed = static_cast<std::uint64_t>(*seed);
  r.into(q.n, r.integer("n", 1, 128));
  read_stop(r, q);
  if (auto ids = r.take(r.fields().get_ids("stop_token_ids", kMaxBias))) q.stop_token_ids = std::move(*ids);
  r.into(q.include_stop_str_in_output, r.boolean("include_stop_str_in_output"));
  r.into(q.ignore_eos, r.boolean("ignore_eos"));
  r.into(q.skip_special_tokens, r.boolean("skip_special_tokens"));
  r.into(q.min_tokens, r.integer("min_tokens", 0, kMaxTokens));
  if (const auto n = r.integer("prompt_logprobs", 0, 20)) {
    if (call.stream) r.wrong("prompt_logprobs", "it cannot be streamed");
    q.prompt_logprobs = call.prompt_logprobs = static_cast<std::uint32_t>(*n);
  }
  if (const auto ms = r.number("deadline_ms", 0, 1e9)) q.deadline_ms = *ms;
  r.into(q.cache_salt, r.string("cache_salt", 256));
  r.into(call.return_token_ids, r.boolean("return_token_ids"));
  r.into(call.wants_timings, r.boolean("timings"));
  // flex asks for less than the tenant's class, priority for no more than it.
  if (auto tier = r.take(r.fields().get_choice(
          "service_tier", {"auto", "default", "flex", "priority", "interactive", "standard", "batch"}))) {
    call.service_tier = *tier;
    if (*tier == "flex")
      q.qos = "batch";
    else if (*tier == "priority")
      q.qos = "interactive";
    else if (*tier != "auto" && *tier != "default")
      q.qos = *tier;
  }
  // Names for the caller's own books; they change nothing here.
  for (const char* name : {"user", "safety_identifier", "prompt_cache_key"}) static_cast<void>(r.string(name, 1024));
}

// Max tokens that were not given: all that the context has room for.
void read_max_tokens(Reader& r, Request& q, std::initializer_list<const char*> names, std::uint32_t absent,
                     bool may_be_0) {
  q.max_tokens = absent;
  bool is_given = false;
  for (const char* name : names) {
    const auto n = r.integer(name, may_be_0 ? 0 : 1, kMaxTokens);
    if (!n) continue;
    if (is_given && q.max_tokens != *n) r.wrong(name, "another limit is given beside it");
    q.max_tokens = static_cast<std::uint32_t>(*n);
    is_given = true;
  }
  if (q.min_tokens > q.max_tokens)
    r.wrong("min_tokens", fmt::format("{} is more than max_tokens {}", q.min_tokens, q.max_tokens));
}

void refuse_grammars(Reader& r) {
  constexpr const char* kWhy = "output bound to a grammar or schema is not there yet";
  for (const char* name : {"structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar",
                           "grammar", "json_schema", "regex", "choice"})
    r.refuse(name, kWhy);
}

std::unexpected<ApiError> wrong_at(const std::string& param, const std::string& what) {
  ApiError error;
  error.param = param;
  error.message = fmt::format("[request] {}: {}", param, what);
  return std::unexpected(std::move(error));
}

// Names of functions go into prompts and logs. Else what is wrong.
std::string_view complaint_about_name(const Json& name) {
  constexpr std::string_view kWanted = "a text of 1 to 256 bytes without control characters wanted";
  if (!name.is_string()) return kWanted;
  const auto& text = name.get_ref<const std::string&>();
  return text.empty() || text.size() > 256 || has_control_characters(text) ? kWanted : std::string_view();
}

// One of the calls that an assistant's message made.
ApiResult<void> check_call(const Json& call, const std::string& at) {
  if (!call.is_object()) return wrong_at(at, show(call) + " is given, an object with a function wanted");
  Fields fields(call, at + ".");
  if (const auto type = fields.get_choice("type", {"function"}); !type) return std::unexpected(type.error());
  if (const auto id = fields.get_string("id", 1024); !id) return std::unexpected(id.error());
  const Json* function = fields.get("function");
  if (function == nullptr || !function->is_object() || !function->contains("name"))
    return wrong_at(at + ".function", "an object with a name wanted");
  if (const auto complaint = complaint_about_name((*function)["name"]); !complaint.empty())
    return wrong_at(at + ".function.name", fmt::format("{} is given, {}", show((*function)["name"]), complaint));
  Fields of_function(*function, at + ".function.");
  const Json* arguments = of_function.get("arguments");
  if (arguments != nullptr && !arguments->is_string() && !arguments->is_object())
    return of_function.wrong("arguments", show(*arguments) + " is given, a JSON object, as text or as it is, wanted");
  return {};
}

// Text of a content: a string, or parts of type text.
ApiResult<std::string> read_content(const Json& content, const std::string& at) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) return wrong_at(at, show(content) + " is given, a text or a list of parts wanted");
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const Json& part = content[i];
    const auto here = fmt::format("{}[{}]", at, i);
    if (!part.is_object() || !part.contains("type") || !part["type"].is_string())
      return wrong_at(here, "a part is an object with a type");
    if (part["type"] != "text")
      return wrong_at(here + ".type", show(part["type"]) + " is not served: the models here read text alone");
    if (!part.contains("text") || !part["text"].is_string()) return wrong_at(here + ".text", "a text is wanted");
    text += (i == 0 ? "" : "\n") + part["text"].get<std::string>();
  }
  return text;
}

}  // namespace

ApiResult<Json> read_messages(const Json& messages) {
  if (!messages.is_array() || messages.empty() || messages.size() > kMaxMessages)
    return wrong_at("messages",
                    fmt::format("{} is given, a list of 1 to {} messages wanted", show(messages), kMaxMessages));
  Json out = Json::array();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Json& message = messages[i];
    const auto at = fmt::format("messages[{}]", i);
    if (!message.is_object()) return wrong_at(at, show(message) + " is given, an object wanted");
    Fields fields(message, at + ".");
    ZRT_TRY(auto role, fields.get_choice("role", {"system", "developer", "user", "assistant", "tool"}));
    if (!role) return wrong_at(at + ".role", "it is missing; one of system, developer, user, assistant, tool wanted");
    if (*role == "developer") role = "system";
    Json one{{"role", *role}};
    const Json* calls = fields.get("tool_calls");
    if (calls != nullptr && (*role != "assistant" || !calls->is_array()))
      return wrong_at(at + ".tool_calls", "a list, in messages of the assistant, wanted");
    const Json* content = fields.get("content");
    if (content != nullptr) {
      ZRT_TRY(one["content"], read_content(*content, at + ".content"));
    } else if (*role == "assistant" && calls != nullptr) {
      one["content"] = "";  // templates put texts together without asking whether there is one
    } else {
      return wrong_at(at + ".content", "it is missing");
    }
    if (calls != nullptr) {
      for (std::size_t k = 0; k < calls->size(); ++k)
        ZRT_CHECK_OK(check_call((*calls)[k], fmt::format("{}.tool_calls[{}]", at, k)));
      one["tool_calls"] = *calls;
      // The API has arguments as JSON in a string, templates write them as JSON themselves.
      for (Json& call : one["tool_calls"]) {
        const auto arguments = call["function"].find("arguments");
        if (arguments == call["function"].end() || !arguments->is_string()) continue;
        if (auto parsed = parse_json(arguments->get_ref<const std::string&>()); parsed && parsed->is_object())
          *arguments = std::move(*parsed);
      }
    }
    for (const char* name : {"name", "tool_call_id", "reasoning_content", "reasoning", "refusal"}) {
      ZRT_TRY(auto text, fields.get_string(name, 16 << 20));
      if (text) one[name] = std::move(*text);
    }
    ZRT_CHECK_OK(fields.expect_no_others());
    out.push_back(std::move(one));
  }
  return out;
}

ApiResult<void> check_tools(const Json& tools) {
  if (!tools.is_array() || tools.size() > kMaxTools)
    return wrong_at("tools", fmt::format("{} is given, a list of at most {} functions wanted", show(tools), kMaxTools));
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const Json& tool = tools[i];
    const auto at = fmt::format("tools[{}]", i);
    if (!tool.is_object() || !tool.contains("type") || tool["type"] != "function")
      return wrong_at(at + ".type", "an object of type \"function\" wanted");
    if (!tool.contains("function") || !tool["function"].is_object() || !tool["function"].contains("name"))
      return wrong_at(at + ".function", "an object with a name wanted");
    const Json& function = tool["function"];
    Fields fields(function, at + ".function.");
    if (const auto complaint = complaint_about_name(function["name"]); !complaint.empty())
      return fields.wrong("name", fmt::format("{} is given, {}", show(function["name"]), complaint));
    if (const auto description = fields.get_string("description"); !description)
      return std::unexpected(description.error());
    if (const auto strict = fields.get_bool("strict"); !strict) return std::unexpected(strict.error());
    const Json* parameters = fields.get("parameters");
    if (parameters != nullptr && !parameters->is_object())
      return fields.wrong("parameters", show(*parameters) + " is given, a JSON schema, which is an object, wanted");
  }
  return {};
}

ApiResult<GenerationCall> parse_chat(const Json& body, const Request& defaults) {
  GenerationCall call;
  Request q = defaults;
  Reader r(body);
  read_common(r, call, q);
  read_max_tokens(r, q, {"max_completion_tokens", "max_tokens"}, Request::kAllThatFit, false);
  bool leaves_open = false;
  if (const Json* messages = r.fields().get("messages")) {
    const auto read = read_messages(*messages);
    if (read) {
      q.messages = read->dump();
      const Json& last = read->back();
      leaves_open = last["role"] == "assistant" && leaves_reasoning_open(last["content"].get_ref<const std::string&>());
    } else {
      r.wrong(read.error());
    }
  } else {
    r.wrong("messages", "it is missing");
  }
  const Json* tools = r.fields().get("tools");
  if (tools != nullptr)
    if (const auto good = check_tools(*tools); !good) r.wrong(good.error());
  const Json* choice = r.fields().get("tool_choice");
  if (choice != nullptr && *choice != "auto" && *choice != "none")
    r.wrong("tool_choice", show(*choice) + " is not served: calls cannot be forced yet; auto and none can be given");
  if (tools != nullptr && !tools->empty() && (choice == nullptr || *choice != "none")) q.tools = tools->dump();
  Json variables = Json::object();
  if (const Json* extra = r.fields().get("chat_template_kwargs")) {
    if (extra->is_object())
      variables = *extra;
    else
      r.wrong("chat_template_kwargs", show(*extra) + " is given, an object wanted");
  }
  if (auto effort = r.take(
          r.fields().get_choice("reasoning_effort", {"none", "minimal", "low", "medium", "high", "xhigh", "max"}))) {
    if (*effort == "none") variables["enable_thinking"] = false;
    variables["reasoning_effort"] = *effort;
  }
  if (!variables.empty()) q.chat_template_kwargs = variables.dump();
  if (const auto add = r.boolean("add_generation_prompt")) q.add_generation_prompt = *add;
  r.into(q.continue_final_message, r.boolean("continue_final_message"));
  if (q.continue_final_message && q.add_generation_prompt.value_or(false))
    r.wrong("continue_final_message", "it cannot be given with add_generation_prompt");
  if (!q.add_generation_prompt.value_or(!q.continue_final_message)) call.prompt_opens_reasoning = leaves_open;
  r.into(call.echo, r.boolean("echo"));
  if (call.echo) r.wrong("echo", "true is not served for chats");
  r.into(call.wants_logprobs, r.boolean("logprobs"));
  const auto top = r.integer("top_logprobs", 0, 20);
  if (top && *top > 0 && !call.wants_logprobs) r.wrong("top_logprobs", "only with \"logprobs\": true");
  call.n_top = static_cast<std::uint32_t>(top.value_or(0));
  if (call.wants_logprobs) q.logprobs = std::max(1u, *call.n_top);
  r.into(call.include_reasoning, r.boolean("include_reasoning"));
  r.refuse("response_format", "output bound to a grammar or schema is not there yet", {Json{{"type", "text"}}});
  refuse_grammars(r);
  r.refuse("functions", "tools are what took their place");
  r.refuse("function_call", "tool_choice is what took its place", {"none", "auto"});
  r.refuse("parallel_tool_calls", "calls are not taken apart yet", {true});
  r.refuse("modalities", "the models here write text alone", {Json::array({"text"})});
  r.refuse("audio", "the models here write text alone");
  r.refuse("prediction", "speculation from a given text is not there yet");
  r.refuse("web_search_options", "this server searches nothing");
  r.refuse("moderation", "this server judges nothing");
  r.refuse("store", "nothing that is said is kept", {false});
  r.refuse("verbosity", "no model here has such a setting", {"medium"});
  r.refuse("prompt_cache_retention", "prefixes are kept in memory while there is room", {"in_memory", "in-memory"});
  r.refuse("prompt_cache_options", "prefixes are kept in memory while there is room");
  if (const Json* metadata = r.fields().get("metadata"); metadata != nullptr && !metadata->is_object())
    r.wrong("metadata", show(*metadata) + " is given, an object wanted");
  ZRT_CHECK_OK(r.finish());
  call.requests.push_back(std::move(q));
  return call;
}

ApiResult<GenerationCall> parse_completion(const Json& body, const Request& defaults) {
  GenerationCall call;
  call.api = Api::kText;
  call.split_reasoning = false;
  Request q = defaults;
  Reader r(body);
  read_common(r, call, q);
  r.into(call.echo, r.boolean("echo"));
  const auto logprobs = r.integer("logprobs", 0, 20);
  call.wants_logprobs = logprobs.has_value();
  if (logprobs) {
    call.n_top = static_cast<std::uint32_t>(*logprobs);
    q.logprobs = std::max(1u, *call.n_top);  // what the engine gives with 0 is none
  }
  if (call.echo && logprobs)
    q.prompt_logprobs = std::max(q.prompt_logprobs.value_or(0), static_cast<std::uint32_t>(*logprobs));
  read_max_tokens(r, q, {"max_tokens"}, 16, q.prompt_logprobs.has_value());
  if (const auto best = r.integer("best_of", 1, 128); best && *best != q.n)
    r.wrong("best_of", fmt::format("{} is not served: every one of n completions is returned", *best));
  r.refuse("suffix", "text cannot be filled in between", {""});
  r.refuse("response_format", "output bound to a grammar or schema is not there yet", {Json{{"type", "text"}}});
  refuse_grammars(r);
  if (call.stream && q.prompt_logprobs && call.echo) r.wrong("echo", "with logprobs it cannot be streamed");
  const Json* prompt = r.fields().get("prompt");
  if (prompt == nullptr) r.wrong("prompt", "it is missing");
  ZRT_CHECK_OK(r.finish());
  const auto ids_of = [](const Json& list) -> std::optional<std::vector<std::int32_t>> {
    std::vector<std::int32_t> ids;
    for (const Json& id : list) {
      const auto number = whole_number(id);
      if (!number || *number < 0 || *number > INT32_MAX) return std::nullopt;
      ids.push_back(static_cast<std::int32_t>(*number));
    }
    return ids;
  };
  const auto add = [&](const Json& one) {
    Request request = q;
    if (one.is_string())
      request.prompt = one.get<std::string>();
    else if (one.is_array() && !one.empty() && one.size() <= kMaxIds)
      request.token_ids = ids_of(one);
    if (request.prompt || request.token_ids)
      call.requests.push_back(std::move(request));
    else
      r.wrong("prompt", show(one) + " is given; a text, a list of token ids, or a list of those wanted");
  };
  const bool is_list = prompt->is_array() && !prompt->empty() && !(*prompt)[0].is_number();
  if (is_list && prompt->size() > kMaxPrompts)
    return r.fields().wrong("prompt", fmt::format("{} prompts, at most {} allowed", prompt->size(), kMaxPrompts));
  if (is_list)
    for (const Json& one : *prompt) add(one);
  else
    add(*prompt);
  ZRT_CHECK_OK(r.finish());
  return call;
}

ApiResult<GenerationCall> parse_generate(const Json& body, const Request& defaults) {
  GenerationCall call;
  call.api = Api::kTokens;
  call.split_reasoning = false;
  call.return_token_ids = true;
  Request q = defaults;
  Reader r(body);
  read_common(r, call, q);
  read_max_tokens(r, q, {"max_tokens"}, 128, q.prompt_logprobs.has_value());
  if (const auto n = r.integer("logprobs", 0, 20)) q.logprobs = static_cast<std::uint32_t>(*n);
  call.wants_logprobs = q.logprobs > 0;
  if (auto ids = r.take(r.fields().get_ids("token_ids", kMaxIds))) q.token_ids = std::move(*ids);
  if (!q.token_ids || q.token_ids->empty()) r.wrong("token_ids", "a list of at least one token id wanted");
  ZRT_CHECK_OK(r.finish());
  call.requests.push_back(std::move(q));
  return call;
}

}  // namespace zinc_rt::server
