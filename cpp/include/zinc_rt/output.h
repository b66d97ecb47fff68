// The parts of a model's text: its answer, its reasoning and its tool calls.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zinc_rt {

enum class PieceKind : std::uint8_t {
  kText,
  kReasoning,
  kCallBegin,      // text: the tool's name, whole
  kCallArguments,  // text: a piece of the arguments, which together are one JSON object
  kCallEnd,        // no text; a call that max_tokens cut has none
};

struct OutputPiece {
  PieceKind kind = PieceKind::kText;
  std::uint32_t call = 0;  // of the kinds of calls: which call of the answer, from 0
  std::string text;
  std::string id;  // kCallBegin: as in ToolCall
};

struct ToolCall {
  std::string id;         // "call_" and 24 hex digits, or 9 characters where the model's template wants those
  std::string name;       // as the model wrote it: it need not be one of the tools
  std::string arguments;  // a JSON object; cut off where the answer was, or what else the model wrote
};

}  // namespace zinc_rt
