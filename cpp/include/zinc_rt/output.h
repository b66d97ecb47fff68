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
  kCallBegin,      // text: the whole name of the tool
  kCallArguments,  // text: a piece of the arguments; all pieces together are one JSON object
  kCallEnd,        // no text; absent if max_tokens cut the call off
};

struct OutputPiece {
  PieceKind kind = PieceKind::kText;
  std::uint32_t call = 0;  // for the kCall kinds: the index of the call in the answer, from 0
  std::string text;
  std::string id;  // only with kCallBegin: ToolCall::id
};

struct ToolCall {
  std::string id;    // "call_" and 24 hex digits, or 9 characters if the model's template requires that
  std::string name;  // as the model wrote it; may be a name that no tool has
  // A JSON object. It is incomplete if the answer was cut off within it, and other text if the model wrote no JSON.
  std::string arguments;
};

}  // namespace zinc_rt
