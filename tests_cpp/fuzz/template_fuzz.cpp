// Input: a template, and after a NUL byte its context as JSON. Whatever the bytes are, the engine must return in time,
// within its memory, and leak nothing.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "jinja/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using Json = nlohmann::ordered_json;
  std::string input(reinterpret_cast<const char*>(data), size);
  std::size_t end = std::min(input.find('\0'), input.size());
  Json context = Json::object();
  if (end < input.size()) {
    Json parsed = Json::parse(input.substr(end + 1), nullptr, false);
    if (parsed.is_object()) context = std::move(parsed);
  } else {
    context = {{"messages", {{{"role", "user"}, {"content", "Hi é"}}, {{"role", "assistant"}, {"content", nullptr}}}},
               {"s", "a b"},
               {"l", {1, 2.5, "x", {{"k", "v"}}}},
               {"add_generation_prompt", true}};
  }
  auto parsed = zinc_rt::ChatTemplate::parse(input.substr(0, end));
  if (!parsed) return 0;
  zinc_rt::RenderLimits limits;
  limits.max_output_bytes = 1 << 20;
  limits.max_value_bytes = 16 << 20;
  limits.max_steps = 2'000'000;
  limits.max_time_ms = 300;
  auto out = parsed->render(context, limits);
  if (out && out->size() > limits.max_output_bytes) __builtin_trap();
  return 0;
}
