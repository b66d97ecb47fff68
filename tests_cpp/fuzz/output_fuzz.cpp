// Any bytes as a model's text, in each format of calls: what comes out does not depend on how the text is cut, and no
// text of the answer is lost or made up.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/strict_json.h"
#include "output/parser.h"

namespace {

using namespace zinc_rt;
using namespace zinc_rt::output;

// The parts, each with a letter and its call, so that equal texts are equal answers.
std::string parse(const Formats& formats, bool is_inside, std::string_view text, std::size_t step) {
  static const auto tools = std::make_shared<const ToolTypes>(*read_any_json(
      R"([{"function":{"name":"f","parameters":{"properties":{"a":{"type":"string"},"b":{"type":"integer"}}}}}])"));
  Parser parser(formats, {.with_calls = true, .in_reasoning = is_inside, .tools = tools});
  std::string out;
  PieceKind last = PieceKind::kCallEnd;
  const auto add = [&](const std::vector<OutputPiece>& pieces) {
    for (const auto& piece : pieces) {
      if (piece.kind != last || piece.kind == PieceKind::kCallBegin || piece.kind == PieceKind::kCallEnd)
        out += "\n" + std::to_string(static_cast<int>(piece.kind)) + " " + std::to_string(piece.call) + " ";
      out += piece.text;
      last = piece.kind;
    }
  };
  for (std::size_t at = 0; at < text.size(); at += step) add(parser.push(text.substr(at, step)));
  add(parser.finish());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto formats = call_formats();
  const auto& format = formats[data[0] % formats.size()];
  const auto& reasoning = reasoning_formats()[data[1] / 4 % reasoning_formats().size()];
  const bool is_inside = data[1] % 2 == 1;
  const Formats of_model(&format, &reasoning, [](std::string_view) { return std::nullopt; });
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto whole = parse(of_model, is_inside, text, size);
  for (const std::size_t step : {1u, 3u, 7u})
    if (parse(of_model, is_inside, text, step) != whole) std::abort();
  return 0;
}
