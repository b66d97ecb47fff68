// What is done with a request before there is a generation: every number is checked, and the prompt becomes tokens.
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "engine/generation.h"

namespace zinc_rt {
namespace {

constexpr std::uint32_t kMaxLogprobs = 128;
constexpr std::uint32_t kMaxPromptLogprobs = 20;
constexpr std::uint32_t kMaxChoices = 128;
constexpr std::size_t kMaxLogitBias = 1024, kMaxStopTokens = 1024, kMaxName = 256;

std::unexpected<Error> refuse(const std::string& message) {
  return fail(StatusCode::kInvalidArgument, "[request] {}", message);
}

Status check_template_fields(const Request& r) {
  if (r.add_generation_prompt.value_or(false) && r.continue_final_message)
    return refuse("add_generation_prompt and continue_final_message are both given, at most one of them allowed");
  if (r.messages) return {};
  const char* given = r.tools                    ? "tools"
                      : r.chat_template_kwargs   ? "chat_template_kwargs"
                      : r.add_generation_prompt  ? "add_generation_prompt"
                      : r.continue_final_message ? "continue_final_message"
                                                 : nullptr;
  return given == nullptr ? Status{} : refuse(fmt::format("{} is given without messages", given));
}

// Renders the messages to text and removes them from the request.
Result<std::string> render(const Model& model, Request& request, const std::string& system) {
  using Json = nlohmann::ordered_json;
  if (request.chat_template_kwargs) {
    const auto kwargs = Json::parse(*request.chat_template_kwargs, nullptr, false);
    if (!kwargs.is_object()) return refuse("chat_template_kwargs is not a JSON object");
    for (const char* name : {"messages", "tools", "add_generation_prompt"})
      if (kwargs.contains(name))
        return refuse(fmt::format("chat_template_kwargs has \"{}\", which is a field of its own", name));
  }
  RenderInput input{.messages = *request.messages,
                    .continue_final_message = request.continue_final_message,
                    .system = system,
                    .cancel = request.cancel};
  if (request.tools) input.tools = *request.tools;
  if (request.chat_template_kwargs) input.extra = *request.chat_template_kwargs;
  input.add_generation_prompt = request.add_generation_prompt.value_or(!request.continue_final_message);
  auto text = model.render(input);
  request.messages.reset();
  request.tools.reset();
  return text;
}

// Encodes a text that may have at most room.tokens. A text that cannot be so short is not encoded at all. One that is
// up to twice too long is encoded, so that the caller can say how long it is.
Result<std::vector<std::int32_t>> encode_within(const Model& model, std::string_view text, bool add_special,
                                                const PromptRoom& room, const std::stop_token& cancel) {
  const auto refuse_length = [&](std::size_t least) {
    return fail(StatusCode::kInvalidArgument, "[prompt] {} bytes are at least {} tokens, {} allowed ({})", text.size(),
                least, room.tokens, room.bound);
  };
  if (const auto least = model.tokenizer().least_tokens(text); least > room.tokens) return refuse_length(least);
  const EncodeLimits limits{.max_tokens = 2 * room.tokens + 64, .cancel = cancel};
  auto ids = model.tokenizer().encode(text, add_special, true, limits);
  if (!ids && ids.error().code == StatusCode::kInvalidArgument) return refuse_length(limits.max_tokens + 1);
  return ids;
}

}  // namespace

Status Generation::check(const Request& r, const Model& model) {
  const std::uint32_t vocab_size = model.config().vocab_size;
  const auto between = [](const char* name, float value, float low, float high) -> Status {
    if (value >= low && value <= high) return {};  // false for NaN
    return refuse(fmt::format("{} is {}, {} to {} allowed", name, value, low, high));
  };
  ZRT_CHECK_OK(between("temperature", r.temperature, 0, 100));
  ZRT_CHECK_OK(between("top_p", r.top_p, 0, 1));
  ZRT_CHECK_OK(between("min_p", r.min_p, 0, 1));
  ZRT_CHECK_OK(between("typical_p", r.typical_p, 0, 1));
  ZRT_CHECK_OK(between("repetition_penalty", r.repetition_penalty, 0.01f, 100));
  ZRT_CHECK_OK(between("presence_penalty", r.presence_penalty, -100, 100));
  ZRT_CHECK_OK(between("frequency_penalty", r.frequency_penalty, -100, 100));
  if (r.temperature > 0 && r.temperature < 1e-4f)
    return refuse(fmt::format("temperature is {}, 0 (greedy) or at least 0.0001 allowed", r.temperature));
  if (r.n < 1 || r.n > kMaxChoices) return refuse(fmt::format("n is {}, 1 to {} allowed", r.n, kMaxChoices));
  if (r.max_tokens < 1 && !r.prompt_logprobs)
    return refuse("max_tokens is 0, at least 1 wanted where prompt_logprobs is not given");
  if (r.min_tokens > r.max_tokens)
    return refuse(fmt::format("min_tokens is {}, 0 to {} (max_tokens) allowed", r.min_tokens, r.max_tokens));
  if (r.logprobs > kMaxLogprobs)
    return refuse(fmt::format("logprobs is {}, at most {} allowed", r.logprobs, kMaxLogprobs));
  if (r.prompt_logprobs && *r.prompt_logprobs > kMaxPromptLogprobs)
    return refuse(fmt::format("prompt_logprobs is {}, 0 to {} allowed", *r.prompt_logprobs, kMaxPromptLogprobs));
  if (!(r.deadline_ms >= 0)) return refuse(fmt::format("deadline_ms is {}, 0 or more wanted", r.deadline_ms));
  const auto is_known = [&](std::int32_t id) { return id >= 0 && static_cast<std::uint32_t>(id) < vocab_size; };
  if (r.stop_token_ids.size() > kMaxStopTokens)
    return refuse(
        fmt::format("stop_token_ids has {} entries, 0 to {} allowed", r.stop_token_ids.size(), kMaxStopTokens));
  for (const auto id : r.stop_token_ids)
    if (!is_known(id))
      return refuse(fmt::format("stop token id {}, the vocabulary has {} (stop_token_ids)", id, vocab_size));
  if (r.logit_bias.size() > kMaxLogitBias)
    return refuse(fmt::format("logit_bias has {} entries, 0 to {} allowed", r.logit_bias.size(), kMaxLogitBias));
  for (const auto& [id, bias] : r.logit_bias) {
    if (!is_known(id)) return refuse(fmt::format("logit_bias of token id {}, the vocabulary has {}", id, vocab_size));
    ZRT_CHECK_OK(between("logit_bias", bias, -100, 100));
  }
  if (const std::size_t n_end = r.stop_token_ids.size() + (r.ignore_eos ? 0 : model.end_tokens().size());
      r.min_tokens > 0 && r.logit_bias.size() + n_end > kMaxBias)
    return refuse(
        fmt::format("min_tokens bans {} tokens that end the text, and logit_bias has {} entries; {} together allowed",
                    n_end, r.logit_bias.size(), kMaxBias));
  if (r.min_tokens > 0 && r.stop_token_ids.size() + model.end_tokens().size() >= vocab_size) {
    std::set<std::int32_t> banned(r.stop_token_ids.begin(), r.stop_token_ids.end());
    if (!r.ignore_eos) banned.insert(model.end_tokens().begin(), model.end_tokens().end());
    if (banned.size() >= vocab_size)
      return refuse(
          fmt::format("min_tokens bans {} tokens that end the text, the vocabulary has {}", banned.size(), vocab_size));
  }
  for (const auto& [name, text] : {std::pair("cache_salt", &r.cache_salt), std::pair("request_id", &r.request_id),
                                   std::pair("traceparent", &r.traceparent)})
    if (text->size() > kMaxName)
      return refuse(fmt::format("{} has {} bytes, 0 to {} allowed", name, text->size(), kMaxName));
  return check_template_fields(r);
}

Result<std::vector<std::int32_t>> Generation::take_prompt(const Model& model, Request& request,
                                                          const std::string& system, const PromptRoom& room) {
  const int given = request.prompt.has_value() + request.messages.has_value() + request.token_ids.has_value();
  if (given != 1) return refuse(fmt::format("{} of prompt, messages and token_ids are given, just one wanted", given));
  if (request.token_ids) {
    for (const auto id : *request.token_ids)
      if (id < 0 || static_cast<std::uint32_t>(id) >= model.config().vocab_size)
        return refuse(fmt::format("token id {}, the vocabulary has {}", id, model.config().vocab_size));
    return *std::exchange(request.token_ids, std::nullopt);
  }
  if (request.prompt) {
    const std::string text = *std::exchange(request.prompt, std::nullopt);
    return encode_within(model, text, true, room, request.cancel);
  }
  ZRT_TRY(const auto text, render(model, request, system));
  // The template writes the special tokens itself; a BOS that it wrote is not doubled.
  ZRT_TRY(auto ids, encode_within(model, text, false, room, request.cancel));
  const auto bos = model.tokenizer().bos_id();
  if (model.tokenizer().adds_bos() && bos && (ids.empty() || ids[0] != *bos)) ids.insert(ids.begin(), *bos);
  return ids;
}

}  // namespace zinc_rt
