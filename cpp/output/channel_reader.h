// ChannelReader splits the text of a model that writes messages with headers (gpt-oss, the format called Harmony):
//   <|channel|>analysis<|message|>REASONING<|end|>
//   <|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{..}<|call|>
//   <|start|>assistant<|channel|>final<|message|>ANSWER<|return|>
// The marks are special tokens. The prompt ends with <|start|>assistant, so that the answer begins within a header. The
// recipient ("to=") may stand before or after the channel. Text that stands where a header is expected, and is none, is
// part of the answer; a grammar may force such text.
// Thread rule: one thread at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "output/call_reader.h"
#include "zinc_rt/output.h"

namespace zinc_rt::output {

// Returns whether a prompt that a chat template rendered is in this format.
bool has_channels(std::string_view prompt);

class ChannelReader {
 public:
  // with_calls: the request has tools. Otherwise calls are part of the answer's text.
  explicit ChannelReader(bool with_calls) : with_calls_(with_calls) {}

  // Takes text.
  void feed(std::string_view text);
  // Takes a special token. Returns false if it is none of the marks, or stands where it means nothing.
  bool meet(std::string_view token);
  // Ends the text. A call whose arguments are whole has ended, too, because the token that ends it also ends the
  // generation.
  void finish();
  // Returns what has become final since the last call.
  std::vector<OutputPiece> take();

  bool is_in_reasoning() const { return state_ == State::kBody && kind_ == PieceKind::kReasoning; }

 private:
  // kBetween: no mark of a header has come yet, and text may be the recipient in the header that the prompt began.
  enum class State : std::uint8_t { kBetween, kHeader, kBody };

  void begin_body();
  void end_message();
  void put(std::string_view text);

  const bool with_calls_;
  State state_ = State::kBetween;
  // The header so far: what stands before the channel, the channel, and what stands behind <|constrain|>.
  enum Part : std::uint8_t { kRole, kChannel, kConstraint, kParts };
  std::string header_[kParts];
  Part part_ = kRole;
  PieceKind kind_ = PieceKind::kText;              // of the body: kText, kReasoning or kCallArguments
  bool has_text_ = false, has_reasoning_ = false;  // whether messages before this one had some
  JsonCopy arguments_;
  std::uint32_t n_calls_ = 0;
  std::vector<OutputPiece> out_;
};

}  // namespace zinc_rt::output
