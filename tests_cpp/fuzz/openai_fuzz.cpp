// Any bytes as a body of the API: read or refused with a message, by each of the three readers.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "server/openai_request.h"
#include "server/reasoning.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace zinc_rt::server;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  split_reasoning(bytes, size % 2 == 0);
  const auto body = parse_json(bytes);
  if (!body && body.error().message.empty()) std::abort();
  if (!body || !body->is_object()) return 0;
  for (const auto read : {parse_chat, parse_completion, parse_generate}) {
    std::vector<std::string> ignored;
    const auto call = read(*body, {}, size % 2 == 0 ? &ignored : nullptr);
    if (!call && (call.error().status != 400 || call.error().message.empty())) std::abort();
    if (call && call->requests.empty()) std::abort();
    error_json(call ? ApiError() : call.error());
  }
  return 0;
}
