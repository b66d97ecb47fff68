// Any bytes as a body of the API: read or refused with a message, by each of the readers.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "server/api/embedding.h"
#include "server/api/generation_call.h"
#include "server/api/rerank.h"

namespace {

template <class Read>
void expect_read_or_refused(const Read& read, const zinc_rt::server::Json& body, std::size_t size) {
  std::vector<std::string> ignored;
  const auto call = read(body, {}, size % 2 == 0 ? &ignored : nullptr);
  if (!call && (call.error().status != 400 || call.error().message.empty())) std::abort();
  if (call && call->requests.empty()) std::abort();
  error_json(call ? zinc_rt::server::ApiError() : call.error());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace zinc_rt::server;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto body = parse_json(bytes);
  if (!body && body.error().message.empty()) std::abort();
  if (!body || !body->is_object()) return 0;
  for (const auto read : {parse_chat, parse_completion, parse_generate, parse_messages, parse_responses,
                          parse_ollama_chat, parse_ollama_generate})
    expect_read_or_refused(read, *body, size);
  for (const auto read : {parse_embedding, parse_ollama_embed, parse_ollama_embeddings})
    expect_read_or_refused(read, *body, size);
  for (const auto read : {parse_rerank, parse_score}) expect_read_or_refused(read, *body, size);
  return 0;
}
