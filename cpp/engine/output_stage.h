// OutputStage turns the tokens of a choice into its output: text or, with Request::parse_output, typed parts (text,
// reasoning, tool calls). It cuts the output at the first stop string. The drainer calls it for each token.
// Thread rule: one thread at a time.
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

// The tokens of a prompt, and what is needed to interpret its answer.
struct Prompt {
  std::vector<std::int32_t> ids;
  std::uint32_t second_text = 0;                   // the ids from this index on have token type 1; 0 if none have
  bool opens_reasoning = false;                    // the prompt ends inside the model's reasoning
  std::shared_ptr<const output::ToolTypes> tools;  // null if the request has no tools
  std::vector<BoundTool> bound_tools;              // emptied when the mask is built
  // The tokens of the request's prediction (a text that the answer should resemble).
  std::vector<std::int32_t> expected;
  // The mask restricts the answer's first token. It is null if no grammar restricts the answer.
  std::shared_ptr<const AnswerMask> mask;
};

class OutputStage {
 public:
  OutputStage(const Model& model, const Request& request, const Prompt& prompt);

  // Returns the part of the output that is final after this token. Stop strings are searched only if looks_for_stops is
  // true; the caller sets it from Request::min_tokens.
  std::vector<OutputPiece> push(std::int32_t id, bool looks_for_stops);
  // Ends the text and returns the output that was held back.
  std::vector<OutputPiece> finish();
  // Returns true if a stop string was found or the last allowed tool call has ended.
  bool stopped() const { return stops_.stopped() || has_all_calls_; }
  const std::string& stop_string() const { return stops_.found(); }
  bool is_in_reasoning() const { return parser_ != nullptr && parser_->is_in_reasoning(); }

 private:
  // Cuts the pieces after the last allowed tool call and, if at_stops is true, at stop strings.
  std::vector<OutputPiece> cut(std::vector<OutputPiece> pieces, bool at_stops);
  void flush_held(std::vector<OutputPiece>& out);

  const Tokenizer& tokenizer_;
  Detokenizer detokenizer_;
  StopMatcher stops_;
  PieceKind held_kind_ = PieceKind::kText;  // the kind of the text that stops_ holds back
  std::unique_ptr<output::Parser> parser_;  // null if all output is plain text
  std::uint32_t n_calls_ = 0, max_calls_;
  bool has_all_calls_ = false;
};

}  // namespace zinc_rt
