// Defines the parts into which a model's text is split: its answer, its reasoning and its tool calls.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zinc_rt {

enum class PieceKind : std::uint8_t {
  kText,
  kReasoning,
  kCallBegin,      // text is the whole name of the tool
  kCallArguments,  // text is a piece of the arguments; all pieces together are one JSON object
  kCallEnd,        // has no text; missing if max_tokens cut the call off
};

struct OutputPiece {
  PieceKind kind = PieceKind::kText;
  std::uint32_t call = 0;  // for the kCall kinds, the index of the call in the answer, from 0
  std::string text;
  std::string id;  // set only with kCallBegin, to ToolCall::id
};

struct ToolCall {
  std::string id;    // "call_" and 24 hexadecimal digits, or 9 characters if the model's template requires that
  std::string name;  // as the model wrote it, so there may be no tool of this name
  // The arguments are a JSON object. It is incomplete if the answer was cut off within it, and other text if the model
  // wrote no JSON.
  std::string arguments;
};

}  // namespace zinc_rt
