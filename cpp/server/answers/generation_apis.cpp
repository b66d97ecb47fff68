#include "server/answers/generation_apis.h"

#include <fmt/format.h>

#include <array>
#include <ctime>

#include "zinc_rt/version.h"

namespace zinc_rt::server {

std::span<const GenerationApi> generation_apis() {
  static constexpr auto kApis = std::to_array<GenerationApi>({
      {"/v1/chat/completions", parse_chat, "chatcmpl-"},
      {"/chat/completions", parse_chat, "chatcmpl-"},
      {"/openai/deployments/{model}/chat/completions", parse_chat, "chatcmpl-"},
      {"/openai/deployments/{model}/completions", parse_completion, "cmpl-"},
      {"/v1/completions", parse_completion, "cmpl-"},
      {"/completions", parse_completion, "cmpl-"},
      {"/generate", parse_generate, "gen-"},
      {"/v1/messages", parse_messages, "msg_", write_messages},
      {"/v1/responses", parse_responses, "resp_", write_responses, true},
      {"/responses", parse_responses, "resp_", write_responses, true},
      {"/api/chat", parse_ollama_chat, "ollama-", write_ollama, false, ollama_loaded},
      {"/api/generate", parse_ollama_generate, "ollama-", write_ollama, false, ollama_loaded},
  });
  return kApis;
}

AnswerHead make_head(const GenerationApi& api, const GenerationCall& call, const std::string& id,
                     const std::string& model_id, const ModelCard& card) {
  AnswerHead head;
  head.id = api.id_prefix + id;
  head.model = model_id;
  head.created_s = static_cast<std::int64_t>(std::time(nullptr));
  head.fingerprint = fmt::format("zrt-{}-{}-{}", kVersion, card.arithmetic, kArithmeticVersion);
  const auto& tier = call.service_tier;
  if (!tier.empty()) head.service_tier = tier == "auto" ? "default" : tier;
  return head;
}

}  // namespace zinc_rt::server
