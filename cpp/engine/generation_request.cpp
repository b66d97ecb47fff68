// Prepares a request before its generation exists: checks every number and tokenizes the prompt.
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/conversation.h"
#include "base/error.h"
#include "engine/generation.h"
#include "zinc_rt/request_fields.h"

namespace zinc_rt {
namespace {

std::unexpected<Error> refuse(const char* field, const std::string& message) {
  return fail({StatusCode::kInvalidArgument, field}, "[request] {}", message);
}

Status check_output_fields(const Request& r) {
  const bool has_format = r.output_format.kind != OutputFormat::Kind::kText;
  const bool is_bound = has_format || r.tool_choice != ToolChoice::kAuto;
  if (is_bound && r.ignore_eos)
    return refuse(has_format ? "output_format" : "tool_choice",
                  "ignore_eos is given with an output format or a tool choice, which end");
  if (is_bound && r.min_tokens > 0)
    return refuse(has_format ? "output_format" : "min_tokens",
                  fmt::format("min_tokens is {} with an output format or a tool choice, 0 allowed", r.min_tokens));
  if (r.tool_choice != ToolChoice::kAuto && (!r.parse_output || !has_tools(r)))
    return refuse("tool_choice", "a tool choice that demands calls is given without parse_output or without tools");
  return {};
}

Status check_template_fields(const Request& r) {
  if (r.add_generation_prompt.value_or(false) && r.continue_final_message)
    return refuse("continue_final_message",
                  "add_generation_prompt and continue_final_message are both given, at most one of them allowed");
  const char* twice = r.conversation == nullptr ? nullptr
                      : r.tools                 ? "tools"
                      : r.chat_template_kwargs  ? "chat_template_kwargs"
                                                : nullptr;
  if (twice != nullptr) return refuse(twice, fmt::format("{} is given beside a conversation, which has it", twice));
  if (has_messages(r)) return {};
  const char* given = r.tools                    ? "tools"
                      : r.chat_template_kwargs   ? "chat_template_kwargs"
                      : r.add_generation_prompt  ? "add_generation_prompt"
                      : r.continue_final_message ? "continue_final_message"
                                                 : nullptr;
  return given == nullptr ? Status{} : refuse(given, fmt::format("{} is given without messages", given));
}

// Returns whether the end of the rendered prompt, which begins the answer, opens the model's reasoning.
bool opens_reasoning(const Model& model, std::string_view prompt) {
  const auto* format = model.formats().reasoning();
  const auto trim = [](std::string_view text) { return text.substr(0, text.find_last_not_of(" \t\r\n") + 1); };
  prompt = trim(prompt);
  if (const auto head = trim(format->head); !head.empty() && prompt.ends_with(head)) {
    prompt.remove_suffix(head.size());
    prompt = trim(prompt);
  }
  return prompt.ends_with(format->open);
}

// Returns whether the last message, which the answer continues, ends inside the model's reasoning.
bool leaves_reasoning_open(const Model& model, const nlohmann::ordered_json& messages) {
  if (messages.empty() || !messages.back().is_object()) return false;
  const auto& last = messages.back();
  return last.value("role", nlohmann::ordered_json()) == "assistant" && last.contains("content") &&
         model.formats().leaves_reasoning_open(output::text_of_content(last["content"]));
}

// Checks that a member of the request is within the bounds in the table of fields. The bounds limit a number, the bytes
// of a text or the entries of a list. NaN is outside all bounds.
struct CheckBounds {
  const Request& r;
  const RequestField& field;

  Status operator()(float Request::* member) const { return number(r.*member); }
  Status operator()(std::uint32_t Request::* member) const { return number(r.*member); }
  Status operator()(std::optional<std::uint32_t> Request::* member) const { return number((r.*member).value_or(0)); }
  Status operator()(std::string Request::* member) const { return size((r.*member).size(), "bytes"); }
  template <class T>
  Status operator()(std::vector<T> Request::* member) const {
    return size((r.*member).size(), "entries");
  }
  Status operator()(std::map<std::int32_t, float> Request::* member) const {
    return size((r.*member).size(), "entries");
  }
  Status operator()(auto) const { return {}; }

 private:
  const Bounds& bounds() const { return field.bounds; }
  // Returns whether the value is within the bounds. It compares in the type of the value, because 0.01 as a float is
  // less than 0.01 as a double.
  bool has(auto value) const {
    using T = decltype(value);
    return value >= static_cast<T>(bounds().least) && value <= static_cast<T>(bounds().most);
  }
  Status number(auto value) const {
    if (has(value)) return {};
    return refuse(field.name,
                  fmt::format("{} is {}, {} to {} allowed", field.name, value, bounds().least, bounds().most));
  }
  Status size(std::size_t n, const char* of) const {
    if (has(n)) return {};
    return refuse(field.name, fmt::format("{} has {} {}, 0 to {} allowed", field.name, n, of, bounds().most));
  }
};

Status check_bounds(const Request& r) {
  for (const RequestField& field : request_fields())
    if ((field.taken_by & RequestField::kPython) != 0 && field.bounds.most > 0)
      ZRT_CHECK_OK(std::visit(CheckBounds{r, field}, field.member));
  return {};
}

Status check_embedding(const Request& r, const Model& model) {
  if (model.info().pooling == Pooling::kNone)
    return refuse(
        "embed",
        fmt::format(
            "model \"{}\" generates and gives no embeddings; opened with pooling mean or last it gives them and "
            "generates nothing",
            model.name()));
  const bool is_rank = model.info().pooling == Pooling::kRank;
  if (is_rank && (!r.text_pair || !r.prompt))
    return refuse("text_pair",
                  fmt::format("model \"{}\" scores pairs of texts (pooling rank) and gives no embeddings; prompt and "
                              "text_pair are wanted",
                              model.name()));
  if (is_rank && r.dimensions > 0) return refuse("dimensions", "dimensions is given for a score");
  if (!is_rank && r.text_pair)
    return refuse("text_pair", fmt::format("text_pair is given, and model \"{}\" (pooling {}) scores no pairs",
                                           model.name(), to_string(model.info().pooling)));
  if (r.max_tokens != 0)
    return refuse("max_tokens", fmt::format("max_tokens is {}, 0 wanted for an embedding", r.max_tokens));
  if (r.n != 1) return refuse("n", fmt::format("n is {}, 1 wanted for an embedding", r.n));
  const std::pair<const char*, bool> fields[] = {
      {"prompt_logprobs", r.prompt_logprobs.has_value()},
      {"logprobs", r.logprobs > 0},
      {"return_logits_hash", r.return_logits_hash},
      {"logits_processor", r.logits_processor != nullptr},
      {"logit_bias", !r.logit_bias.empty()},
      {"min_tokens", r.min_tokens > 0},
      {"stop", !r.stop.empty()},
      {"stop_token_ids", !r.stop_token_ids.empty()},
      {"output_format", r.output_format.kind != OutputFormat::Kind::kText},
      {"tool_choice", r.tool_choice != ToolChoice::kAuto},
      {"speculate", !r.speculate.empty()},
      {"prediction", !r.prediction.empty()},
      {"prediction_token_ids", !r.prediction_token_ids.empty()},
  };
  for (const auto& [name, is_given] : fields)
    if (is_given) return refuse(name, fmt::format("{} is given for an embedding, which picks no token", name));
  if (r.dimensions > model.config().model_dim)
    return refuse("dimensions",
                  fmt::format("dimensions is {}, 1 to {} allowed", r.dimensions, model.config().model_dim));
  if (!(r.deadline_ms >= 0))
    return refuse("deadline_ms", fmt::format("deadline_ms is {}, 0 or more wanted", r.deadline_ms));
  ZRT_CHECK_OK(check_bounds(r));
  return check_template_fields(r);
}

// Renders the messages to text and removes them from the request.
Result<MarkedText> render(const Model& model, Request& request, const std::string& system, Prompt& prompt) {
  ZRT_TRY(auto chat, take_conversation(request));
  for (const char* name : {"messages", "tools", "add_generation_prompt"})
    if (chat.variables.contains(name))
      return refuse("chat_template_kwargs",
                    fmt::format("chat_template_kwargs has \"{}\", which is a field of its own", name));
  if (request.parse_output && !chat.tools.is_null()) {
    prompt.tools = std::make_shared<const output::ToolTypes>(chat.tools);
    prompt.bound_tools = bound_tools(request, chat.tools);
  }
  const RenderOptions options{
      .add_generation_prompt = request.add_generation_prompt.value_or(!request.continue_final_message),
      .continue_final_message = request.continue_final_message,
      .system = system,
      .cancel = request.cancel};
  const bool is_open =
      request.parse_output && !options.add_generation_prompt && leaves_reasoning_open(model, chat.messages);
  auto text = model.render(std::move(chat), options);
  if (text && request.parse_output)
    prompt.opens_reasoning = options.add_generation_prompt ? opens_reasoning(model, text->text()) : is_open;
  return text;
}

// Encodes a text that has at most room.tokens tokens. A text that is certainly too long is not encoded. If it may be up
// to twice too long, it is encoded, so that the error can give its length.
Result<std::vector<std::int32_t>> encode_within(const Model& model, std::string_view text, bool add_special,
                                                const PromptRoom& room, const std::stop_token& cancel,
                                                const OutsideText& outside = {}) {
  const auto refuse_length = [&](std::size_t least) {
    return fail({StatusCode::kInvalidArgument, "", room.reason},
                "[prompt] {} bytes are at least {} tokens, {} allowed ({})", text.size(), least, room.tokens,
                room.bound);
  };
  if (const auto least = model.tokenizer().least_tokens(text); least > room.tokens) return refuse_length(least);
  const EncodeLimits limits{.max_tokens = static_cast<std::size_t>(2 * room.tokens + 64), .cancel = cancel};
  auto ids = model.tokenizer().encode(text, add_special, true, limits, outside);
  if (!ids && ids.error().code == StatusCode::kInvalidArgument) return refuse_length(limits.max_tokens + 1);
  return ids;
}

// Appends the second text of a pair to the prompt, which becomes [CLS] first [SEP] second [SEP].
Status add_second_text(const Model& model, const std::string& text, const PromptRoom& room,
                       const std::stop_token& cancel, Prompt& prompt) {
  ZRT_TRY(const auto ids, encode_within(model, text, true, room, cancel));
  if (model.config().n_token_types > 1) prompt.second_text = static_cast<std::uint32_t>(prompt.ids.size());
  const auto first = ids.begin() + (model.tokenizer().adds_bos() && !ids.empty() ? 1 : 0);
  prompt.ids.insert(prompt.ids.end(), first, ids.end());
  return {};
}

// Checks that all ids are in the vocabulary. `field` names the member of the request that holds them.
Status check_in_vocabulary(const char* field, std::span<const std::int32_t> ids, const Model& model) {
  for (const auto id : ids)
    if (id < 0 || static_cast<std::uint32_t>(id) >= model.config().vocab_size)
      return refuse(field, fmt::format("token id {}, the vocabulary has {}", id, model.config().vocab_size));
  return {};
}

// Returns the tokens of the request's prediction, and removes it from the request.
Result<std::vector<std::int32_t>> take_prediction(const Model& model, Request& request) {
  const std::uint32_t most = model.info().max_context;
  const auto too_long = [&](const char* name, const char* how, std::uint64_t n) {
    return refuse(name, fmt::format("{} has {}{} tokens, {} allowed (the context)", name, how, n, most));
  };
  const std::string text = std::exchange(request.prediction, {});
  std::vector<std::int32_t> ids = std::exchange(request.prediction_token_ids, {});
  if (text.empty()) {
    ZRT_CHECK_OK(check_in_vocabulary("prediction_token_ids", ids, model));
    if (ids.size() > most) return too_long("prediction_token_ids", "", ids.size());
    return ids;
  }
  if (!ids.empty()) return refuse("prediction", "prediction and prediction_token_ids are given, one wanted");
  if (const auto least = model.tokenizer().least_tokens(text); least > most)
    return too_long("prediction", "at least ", least);
  auto encoded = model.tokenizer().encode(text, false, true, {.max_tokens = most, .cancel = request.cancel}, {});
  if (!encoded && encoded.error().code == StatusCode::kInvalidArgument)
    return too_long("prediction", "at least ", std::uint64_t{most} + 1);
  if (!encoded) return std::unexpected(about("prediction", std::move(encoded).error()));
  if (encoded->size() > most) return too_long("prediction", "", encoded->size());
  return encoded;
}

Result<Prompt> make_prompt(const Model& model, Request& request, const std::string& system, const PromptRoom& room,
                           std::optional<bool> add_special) {
  Prompt prompt;
  const int given = request.prompt.has_value() + request.messages.has_value() + (request.conversation != nullptr) +
                    request.token_ids.has_value();
  if (given != 1)
    return refuse("", fmt::format("{} of prompt, messages and token_ids are given, just one wanted", given));
  if (request.token_ids) {
    ZRT_CHECK_OK(check_in_vocabulary("token_ids", *request.token_ids, model));
    prompt.ids = *std::exchange(request.token_ids, std::nullopt);
    return prompt;
  }
  if (request.prompt) {
    const std::string text = *std::exchange(request.prompt, std::nullopt);
    ZRT_TRY(prompt.ids, encode_within(model, text, add_special.value_or(true), room, request.cancel));
    if (request.text_pair)
      ZRT_CHECK_OK(
          add_second_text(model, *std::exchange(request.text_pair, std::nullopt), room, request.cancel, prompt));
    return prompt;
  }
  ZRT_TRY(const auto text, render(model, request, system, prompt));
  // The template writes the special tokens itself. If it wrote a BOS, none is added.
  ZRT_TRY(prompt.ids,
          encode_within(model, text.text(), add_special.value_or(false), room, request.cancel, model.outside_of(text)));
  if (add_special) return prompt;
  const auto bos = model.tokenizer().bos_id();
  if (model.tokenizer().adds_bos() && bos && (prompt.ids.empty() || prompt.ids[0] != *bos))
    prompt.ids.insert(prompt.ids.begin(), *bos);
  return prompt;
}

}  // namespace

Status Generation::check(const Request& r, const Model& model) {
  if (model.info().pooling != Pooling::kNone && !r.embed)
    return refuse("embed", fmt::format("model \"{}\" gives embeddings (pooling {}) and generates nothing", model.name(),
                                       to_string(model.info().pooling)));
  if (!r.embed && r.text_pair) return refuse("text_pair", "text_pair is given without embed");
  if (r.embed) return check_embedding(r, model);
  const std::uint32_t vocab_size = model.config().vocab_size;
  ZRT_CHECK_OK(check_bounds(r));
  if (r.temperature > 0 && r.temperature < 1e-4f)
    return refuse("temperature",
                  fmt::format("temperature is {}, 0 (greedy) or at least 0.0001 allowed", r.temperature));
  if (!r.speculate.empty() && !find_speculation(r.speculate))
    return refuse("speculate",
                  fmt::format("speculate is \"{}\", auto, off or 1 to {} wanted", r.speculate, kMostGuesses));
  if (r.max_tokens < 1 && !r.prompt_logprobs)
    return refuse("max_tokens", "max_tokens is 0, at least 1 wanted where prompt_logprobs is not given");
  if (r.min_tokens > r.max_tokens)
    return refuse("min_tokens",
                  fmt::format("min_tokens is {}, 0 to {} (max_tokens) allowed", r.min_tokens, r.max_tokens));
  if (!(r.deadline_ms >= 0))
    return refuse("deadline_ms", fmt::format("deadline_ms is {}, 0 or more wanted", r.deadline_ms));
  const auto is_known = [&](std::int32_t id) { return id >= 0 && static_cast<std::uint32_t>(id) < vocab_size; };
  for (const auto id : r.stop_token_ids)
    if (!is_known(id))
      return refuse("stop_token_ids",
                    fmt::format("stop token id {}, the vocabulary has {} (stop_token_ids)", id, vocab_size));
  for (const auto& [id, bias] : r.logit_bias) {
    if (!is_known(id))
      return refuse("logit_bias", fmt::format("logit_bias of token id {}, the vocabulary has {}", id, vocab_size));
    if (!(bias >= -100 && bias <= 100))
      return refuse("logit_bias", fmt::format("logit_bias is {}, -100 to 100 allowed", bias));
  }
  if (const std::size_t n_end = r.stop_token_ids.size() + (r.ignore_eos ? 0 : model.end_tokens().size());
      r.min_tokens > 0 && r.logit_bias.size() + n_end > kMaxBias)
    return refuse(
        "min_tokens",
        fmt::format("min_tokens bans {} tokens that end the text, and logit_bias has {} entries; {} together allowed",
                    n_end, r.logit_bias.size(), kMaxBias));
  if (r.min_tokens > 0 && r.stop_token_ids.size() + model.end_tokens().size() >= vocab_size) {
    std::set<std::int32_t> banned(r.stop_token_ids.begin(), r.stop_token_ids.end());
    if (!r.ignore_eos) banned.insert(model.end_tokens().begin(), model.end_tokens().end());
    if (banned.size() >= vocab_size)
      return refuse("min_tokens", fmt::format("min_tokens bans {} tokens that end the text, the vocabulary has {}",
                                              banned.size(), vocab_size));
  }
  ZRT_CHECK_OK(check_output_fields(r));
  return check_template_fields(r);
}

const char* Generation::prompt_field(const Request& request) {
  return has_messages(request) ? "messages" : request.token_ids ? "token_ids" : "prompt";
}

Result<Prompt> Generation::take_prompt(const Model& model, Request& request, const std::string& system,
                                       const PromptRoom& room, std::optional<bool> add_special) {
  const char* field = prompt_field(request);
  auto prompt = make_prompt(model, request, system, room, add_special);
  if (!prompt) return std::unexpected(about(field, std::move(prompt).error()));
  ZRT_TRY(prompt->expected, take_prediction(model, request));
  return prompt;
}

}  // namespace zinc_rt
