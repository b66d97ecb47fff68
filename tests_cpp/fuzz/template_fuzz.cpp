// Input: a template, and after a NUL byte its context as JSON. Whatever the bytes are, the engine must return in time,
// within its memory, leak nothing, and know of each byte that came from the context.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "jinja/chat_template.h"

namespace {

constexpr std::string_view kForeign = "\ue000";

// Marks lie in the text, in order and apart, and no foreign character is outside of them.
void check_marks(const zinc_rt::MarkedText& out, const std::string& source) {
  std::size_t last = 0;
  bool is_first = true;
  for (const zinc_rt::TextSpan& mark : out.marks()) {
    if (mark.begin >= mark.end || mark.end > out.size() || (!is_first && mark.begin <= last)) __builtin_trap();
    last = mark.end;
    is_first = false;
  }
  // A template can name any character itself.
  for (const std::string_view own : {kForeign, std::string_view("\\"), std::string_view("&#")})
    if (source.find(own) != std::string::npos) return;
  out.view().for_each_run([](std::string_view run, bool is_foreign) {
    if (!is_foreign && run.find(kForeign) != std::string_view::npos) __builtin_trap();
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using Json = nlohmann::ordered_json;
  std::string input(reinterpret_cast<const char*>(data), size);
  std::size_t end = std::min(input.find('\0'), input.size());
  Json context = Json::object();
  if (end < input.size()) {
    Json parsed = Json::parse(input.substr(end + 1), nullptr, false);
    if (parsed.is_object()) context = std::move(parsed);
  } else {
    context = {
        {"messages", {{{"role", "user"}, {"content", "Hi é\ue000"}}, {{"role", "assistant"}, {"content", nullptr}}}},
        {"s", "a \ue000b"},
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
  auto out = parsed->render_marked(context, Json::object(), {}, limits);
  if (out && out->held_bytes() > limits.max_output_bytes) __builtin_trap();
  if (out) check_marks(*out, input.substr(0, end));
  return 0;
}
