// Reads the bodies of /v1/completions and /generate.
#include "base/error.h"
#include "server/api/body_reader.h"

namespace zinc_rt::server {
namespace {

constexpr std::size_t kMaxPrompts = 256;

}  // namespace

ApiResult<GenerationCall> parse_completion(const Json& body, const Request& defaults, Ignored ignored) {
  GenerationCall call;
  call.api = Api::kText;
  Request q = defaults;
  BodyReader r(body, ignored, RequestField::kCompletion);
  read_common(r, RequestField::kCompletion, call, q);
  r.into(call.echo, r.boolean("echo"));
  const auto logprobs = r.integer("logprobs", 0, 20);
  call.wants_logprobs = logprobs.has_value();
  if (logprobs) {
    call.n_top = static_cast<std::uint32_t>(*logprobs);
    q.logprobs = std::max(1u, *call.n_top);  // because with 0 the engine would compute none
  }
  if (call.echo && logprobs)
    q.prompt_logprobs = std::max(q.prompt_logprobs.value_or(0), static_cast<std::uint32_t>(*logprobs));
  read_max_tokens(r, q, {"max_tokens"}, 16, q.prompt_logprobs.has_value());
  if (const auto best = r.integer("best_of", 1, 128); best && *best != q.n)
    r.wrong("best_of", fmt::format("{} is not served: every one of n completions is returned", *best));
  r.refuse("suffix", "text cannot be filled in between", {""});
  read_output_format(r, q, call);
  if (call.stream && q.prompt_logprobs && call.echo) r.wrong("echo", "with logprobs it cannot be streamed");
  const Json* prompt = r.fields().get("prompt");
  if (prompt == nullptr) r.wrong("prompt", "it is missing");
  ZRT_CHECK_OK(r.finish());
  const auto add = [&](const std::string& place, const Json& one) {
    Request request = q;
    if (one.is_string())
      request.prompt = one.get<std::string>();
    else if (one.is_array() && !one.empty() && one.size() <= kMaxIds)
      request.token_ids = ids_of(one);
    if (request.prompt || request.token_ids)
      call.requests.push_back(std::move(request));
    else
      r.wrong_entry("prompt", place, show(one) + " is given; a text, a list of token ids, or a list of those wanted");
  };
  const bool is_list = prompt->is_array() && !prompt->empty() && !is_json_number((*prompt)[0]);
  if (is_list && prompt->size() > kMaxPrompts)
    return r.fields().wrong("prompt", fmt::format("{} prompts, at most {} allowed", prompt->size(), kMaxPrompts));
  if (is_list)
    for (std::size_t i = 0; i < prompt->size(); ++i) add(fmt::format("prompt[{}]", i), (*prompt)[i]);
  else
    add("prompt", *prompt);
  ZRT_CHECK_OK(r.finish());
  return call;
}

ApiResult<GenerationCall> parse_generate(const Json& body, const Request& defaults, Ignored ignored) {
  GenerationCall call;
  call.api = Api::kTokens;
  call.return_token_ids = true;
  Request q = defaults;
  BodyReader r(body, ignored, RequestField::kGenerate);
  read_common(r, RequestField::kGenerate, call, q);
  read_max_tokens(r, q, {"max_tokens"}, 128, q.prompt_logprobs.has_value());
  call.wants_logprobs = q.logprobs > 0;
  if (auto ids = r.take(r.fields().get_ids("token_ids", kMaxIds))) q.token_ids = std::move(*ids);
  if (!q.token_ids || q.token_ids->empty()) r.wrong("token_ids", "a list of at least one token id wanted");
  ZRT_CHECK_OK(r.finish());
  call.requests.push_back(std::move(q));
  return call;
}

}  // namespace zinc_rt::server
