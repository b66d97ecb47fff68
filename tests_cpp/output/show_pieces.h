// Writes what an answer came out as, for comparison.
#pragma once

#include <string>
#include <vector>

#include "zinc_rt/output.h"

namespace zinc_rt::output {

// What an answer came out as, one part a line: "text ..", "think ..", "call N name", "args N ..", "end N".
inline std::string show(const std::vector<OutputPiece>& pieces) {
  std::string out;
  const OutputPiece* last = nullptr;
  for (const auto& p : pieces) {
    const bool goes_on = last != nullptr && last->kind == p.kind && last->call == p.call &&
                         p.kind != PieceKind::kCallBegin && p.kind != PieceKind::kCallEnd;
    if (!goes_on) {
      if (!out.empty()) out += "\n";
      const auto call = std::to_string(p.call);
      out += p.kind == PieceKind::kText            ? "text "
             : p.kind == PieceKind::kReasoning     ? "think "
             : p.kind == PieceKind::kCallBegin     ? "call " + call + " "
             : p.kind == PieceKind::kCallArguments ? "args " + call + " "
                                                   : "end " + call;
    }
    out += p.text;
    last = &p;
  }
  return out;
}

}  // namespace zinc_rt::output
