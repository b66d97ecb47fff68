#include "engine/output_stage.h"

#include <utility>

namespace zinc_rt {

OutputStage::OutputStage(const Model& model, const Request& request, const Prompt& prompt)
    : tokenizer_(model.tokenizer()),
      detokenizer_(tokenizer_, request.skip_special_tokens && !request.parse_output,
                   prompt.ids.empty() ? std::nullopt : std::optional(prompt.ids.back())),
      stops_(request.stop, request.include_stop_str_in_output),
      max_calls_(request.max_tool_calls) {
  if (request.parse_output)
    parser_ = std::make_unique<output::Parser>(
        model.formats(), output::Parser::Options{.with_calls = prompt.tools && model.formats().calls() != nullptr,
                                                 .in_reasoning = prompt.opens_reasoning,
                                                 .skips_special = request.skip_special_tokens,
                                                 .tools = prompt.tools});
}

std::vector<OutputPiece> OutputStage::push(std::int32_t id, bool looks_for_stops) {
  auto text = detokenizer_.push(id);
  std::vector<OutputPiece> pieces;
  if (parser_) {
    const bool is_special = tokenizer_.is_special(id);
    const auto name = tokenizer_.token_text(id);
    const bool has_own = (is_special || parser_->is_marker(id)) && text.ends_with(name);
    pieces = parser_->push(id, text, has_own ? name.size() : 0, is_special);
  } else if (!text.empty()) {
    pieces.push_back({PieceKind::kText, 0, std::move(text), {}});
  }
  return cut(std::move(pieces), looks_for_stops);
}

std::vector<OutputPiece> OutputStage::finish() {
  if (stopped()) return {};
  const auto text = detokenizer_.finish();
  std::vector<OutputPiece> pieces;
  if (parser_) {
    pieces = parser_->push(text);
    std::ranges::move(parser_->finish(), std::back_inserter(pieces));
  } else if (!text.empty()) {
    pieces.push_back({PieceKind::kText, 0, text, {}});
  }
  auto out = cut(std::move(pieces), true);
  if (!stopped()) flush_held(out);
  return out;
}

void OutputStage::flush_held(std::vector<OutputPiece>& out) {
  if (auto held = stops_.finish(); !held.empty()) out.push_back({held_kind_, 0, std::move(held), {}});
}

std::vector<OutputPiece> OutputStage::cut(std::vector<OutputPiece> pieces, bool at_stops) {
  std::vector<OutputPiece> out;
  for (auto& piece : pieces) {
    if (stopped()) break;
    const bool is_text = piece.kind == PieceKind::kText || piece.kind == PieceKind::kReasoning;
    // A stop string must lie within one part.
    if (!is_text || piece.kind != held_kind_) flush_held(out);
    if (is_text && at_stops) {
      held_kind_ = piece.kind;
      piece.text = stops_.push(piece.text);
      if (piece.text.empty()) continue;
    }
    if (piece.kind == PieceKind::kCallEnd && ++n_calls_ == max_calls_) has_all_calls_ = true;
    out.push_back(std::move(piece));
  }
  return out;
}

}  // namespace zinc_rt
