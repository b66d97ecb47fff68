// Turns a choice's tokens into what its reader gets: text, or its parts with Request::parse_output, cut at the first
// stop string. Thread rule: one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/answer_mask.h"
#include "engine/model.h"
#include "engine/stop_matcher.h"
#include "output/parser.h"
#include "tokenizer/detokenizer.h"
#include "zinc_rt/request.h"

namespace zinc_rt {

// A prompt's tokens, and what the reader of the answer has to know about them.
struct Prompt {
  std::vector<std::int32_t> ids;
  std::uint32_t second_text = 0;                   // the ids from here on are of type 1; 0: none are
  bool opens_reasoning = false;                    // it ends within the reasoning
  std::shared_ptr<const output::ToolTypes> tools;  // null: none were given
  std::vector<BoundTool> bound_tools;              // until there is a mask
  std::shared_ptr<const AnswerMask> mask;          // of the answer's first token; null: the answer is free
};

class OutputStage {
 public:
  OutputStage(const Model& model, const Request& request, const Prompt& prompt);

  // The text that is final with this token. Stop strings are searched once the text has min_tokens.
  std::vector<OutputPiece> push(std::int32_t id, bool looks_for_stops);
  // Ends the text: returns what was held back.
  std::vector<OutputPiece> finish();
  // Whether a stop string was found, or the last allowed call has ended.
  bool stopped() const { return stops_.stopped() || has_all_calls_; }
  const std::string& stop_string() const { return stops_.found(); }
  bool is_in_reasoning() const { return parser_ != nullptr && parser_->is_in_reasoning(); }

 private:
  // Cuts after the last allowed call and, with at_stops, at stop strings.
  std::vector<OutputPiece> cut(std::vector<OutputPiece> pieces, bool at_stops);
  void flush_held(std::vector<OutputPiece>& out);

  const Tokenizer& tokenizer_;
  Detokenizer detokenizer_;
  StopMatcher stops_;
  PieceKind held_kind_ = PieceKind::kText;  // of the text that stops_ holds back
  std::unique_ptr<output::Parser> parser_;  // null: all is text
  std::uint32_t n_calls_ = 0, max_calls_;
  bool has_all_calls_ = false;
};

}  // namespace zinc_rt
