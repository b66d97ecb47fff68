#include "server/api/request_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace zinc_rt::server {
namespace {

// Returns an estimate of the bytes per likely token in an answer, not counting the bytes per choice.
std::uint64_t bytes_of_logprob(Api api) {
  return api == Api::kChat ? 80 : 40;
}

// A hash in an answer, such as `"0123456789abcdef",`, takes this many bytes.
constexpr std::uint64_t kBytesOfHash = 19;

constexpr std::pair<Api, const char*> kPromptFields[] = {{Api::kChat, "messages"},    {Api::kText, "prompt"},
                                                         {Api::kTokens, "token_ids"}, {Api::kMessages, "messages"},
                                                         {Api::kResponses, "input"},  {Api::kOllamaChat, "messages"},
                                                         {Api::kOllamaText, "prompt"}};

// Returns the name that the API has for a member of the engine's Request.
std::string param_of(const std::string& field, const GenerationCall& call) {
  if (field == "output_format" && !call.format_field.empty()) return call.format_field;
  // If no field sets a format, only tools constrain the output.
  for (const auto& [member, name] : {std::pair("output_format", "tools"), {"embed", "model"}})
    if (field == member) return name;
  const bool is_prompt = field.empty() || field == "prompt" || field == "messages" || field == "token_ids";
  return is_prompt ? std::ranges::find(kPromptFields, call.api, &std::pair<Api, const char*>::first)->second : field;
}

}  // namespace

const char* capability_of(const ModelCard& card) {
  if (card.pooling.empty()) return "completion";
  return card.pooling == "rank" ? "rerank" : "embedding";
}

ApiResult<void> check_generates(const ModelCard& card, const std::string& id) {
  if (card.pooling.empty()) return {};
  const bool scores = card.pooling == "rank";
  return std::unexpected(make_error(
      400,
      fmt::format("[request] model \"{}\" gives {} (pooling {}) and generates nothing; POST {} asks for them", id,
                  scores ? "scores of pairs of texts" : "embeddings", card.pooling,
                  scores ? "/v1/rerank" : "/v1/embeddings"),
      "model"));
}

ApiResult<void> check_answer_size(const GenerationCall& call, std::uint32_t max_context, std::uint64_t most) {
  const char* logprobs = call.api == Api::kChat ? "top_logprobs" : "logprobs";
  // Bytes that each field adds to the answer, in the order in which an error names the fields.
  std::pair<const char*, std::uint64_t> parts[] = {
      {"prompt_logprobs", 0}, {logprobs, 0}, {"return_logits_hash", 0}, {"echo", 0}};
  for (const Request& request : call.requests) {
    // A text has at most as many tokens as bytes. A text longer than the context is refused elsewhere.
    const std::uint64_t n_bytes = request.prompt ? request.prompt->size() : 0;
    const std::uint64_t n_prompt =
        std::min<std::uint64_t>(max_context, request.token_ids ? request.token_ids->size() : n_bytes);
    const std::uint64_t n_generated = std::min(request.max_tokens, max_context);
    const auto of_rows = [&](std::uint64_t rows, std::uint64_t n_top) {
      return rows * (1 + n_top) * bytes_of_logprob(call.api);
    };
    const std::uint64_t of_choice[] = {
        call.prompt_logprobs ? of_rows(n_prompt, *call.prompt_logprobs) : 0,
        call.wants_logprobs ? of_rows(n_generated + (call.echo ? n_prompt : 0), request.logprobs) : 0,
        request.return_logits_hash ? kBytesOfHash * n_generated : 0, call.echo ? std::max(n_bytes, 4 * n_prompt) : 0};
    for (std::size_t i = 0; i < std::size(parts); ++i) parts[i].second += request.n * of_choice[i];
  }
  std::uint64_t bytes = 0;
  for (const auto& [_, of_field] : parts) bytes += of_field;
  if (bytes <= most) return {};
  const Request& first = call.requests.front();
  const char* param =
      first.n > 1 ? "n" : std::ranges::find_if(parts, [](const auto& p) { return p.second > 0; })->first;
  return std::unexpected(make_error(
      400,
      fmt::format("[request] {} prompts, n {}, {}{}{} {}, prompt_logprobs {}: the answer may take {} bytes, {} allowed "
                  "(max_answer_bytes); lower one of these, or max_tokens",
                  call.requests.size(), first.n, call.echo ? "echo, " : "",
                  first.return_logits_hash ? "return_logits_hash, " : "", logprobs, first.logprobs,
                  call.prompt_logprobs.value_or(0), bytes, most),
      param));
}

ApiResult<void> check_context(std::uint32_t wanted, std::uint32_t max_context) {
  if (wanted <= max_context) return {};
  return wrong_field("options.num_ctx", fmt::format("{} is given, the model has a context of {}", wanted, max_context));
}

ApiError prompt_error(const Error& error, std::string param, std::uint32_t max_context) {
  auto out = to_api_error(error);
  if (out.status != 400) return out;
  out.param = std::move(param);
  if (error.reason != Reason::kContextLength) return out;
  out.message = fmt::format("This model's maximum context length is {} tokens. However, this request wants more: {}",
                            max_context, out.message);
  return out;
}

ApiError request_error(const Error& error, const GenerationCall& call, std::uint32_t max_context) {
  auto out = prompt_error(error, param_of(error.field, call), max_context);
  // The engine does not know which of several fields set the format.
  if (out.status == 400 && error.field == "output_format" && !call.format_field.empty())
    out.message = fmt::format("[request] {}: {}", out.param, out.message);
  return out;
}

ApiError submit_error(const Error& error, const GenerationCall& call, std::uint32_t prompt, std::uint32_t max_context) {
  auto out = request_error(error, call, max_context);
  if (out.status == 400 && out.param == "prompt" && call.requests.size() > 1)
    out.message = fmt::format("prompt[{}]: {}", prompt, out.message);
  return out;
}

}  // namespace zinc_rt::server
