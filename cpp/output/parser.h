// Parser splits a model's text into its answer, its reasoning and its tool calls, as the tokens arrive. The result does
// not depend on how the text is cut into pieces.
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "output/call_reader.h"
#include "output/channel_reader.h"
#include "output/format.h"
#include "output/tool_types.h"
#include "zinc_rt/output.h"

namespace zinc_rt::output {

// Formats holds the formats of one model, and the ids of markers that are single tokens of its vocabulary. Each model
// has one Formats object, which is made when the model is loaded.
class Formats {
 public:
  // A FindToken returns the id of the token with this text, or nullopt if the vocabulary has no such token.
  using FindToken = std::function<std::optional<std::int32_t>(std::string_view)>;
  Formats() = default;
  // Looks up the tokens of all markers with `find`. `calls` may be null; `reasoning` may not. has_channels: messages
  // have headers, so that a ChannelReader reads them, and the reasoning format has no meaning. `frame` may be null.
  Formats(const CallFormat* calls, const ReasoningFormat* reasoning, const FindToken& find, bool has_channels = false,
          const AnswerFrame* frame = nullptr);

  const CallFormat* calls() const { return calls_; }
  bool has_channels() const { return has_channels_; }
  const ReasoningFormat* reasoning() const { return reasoning_; }
  // Returns the token of a marker or another fixed text of the format. Returns nullopt if the text consists of ordinary
  // tokens.
  std::optional<std::int32_t> token_of(std::string_view marker) const;
  // Returns all tokens that are markers or other fixed texts of the formats, in ascending order.
  std::vector<std::int32_t> token_ids() const;
  // Returns whether a prompt ends within the reasoning, so that the model's text continues it.
  bool leaves_reasoning_open(std::string_view prompt) const;

 private:
  friend class Parser;
  enum class Role : std::uint8_t { kReasoningOpen, kReasoningClose, kAnswerOpen, kAnswerClose, kCall, kDropped };
  struct Marker {
    std::string_view text;
    Role role;
    const Opening* opening = nullptr;
    // If set, only this token is the marker; the same text in other tokens is plain text.
    std::optional<std::int32_t> id;
  };
  const CallFormat* calls_ = nullptr;
  const ReasoningFormat* reasoning_ = nullptr;
  std::vector<Marker> markers_;
  // The fixed texts of calls other than openings, with their tokens: texts that close calls, and texts within calls.
  std::vector<std::pair<std::string_view, std::optional<std::int32_t>>> signs_;
  bool has_channels_ = false;
  const Opening* whole_ = nullptr;              // the opening without a marker; null if all openings have a marker
  std::optional<std::int32_t> within_opening_;  // a token that an opening has in the middle of its text
};

class Parser final : private CallSink {
 public:
  struct Options {
    bool with_calls = false;                      // if false, calls are plain text
    bool in_reasoning = false;                    // whether the prompt ends within the reasoning
    bool skips_special = true;                    // true: special tokens that are not markers are removed from the text
    std::shared_ptr<const ToolTypes> tools = {};  // must not be null if with_calls is true
  };
  // `formats` must outlive the parser.
  Parser(const Formats& formats, Options options);
  ~Parser() override;

  // Parses the text that became final with a token. If the token is special or is_marker(id), `own` is the number of
  // bytes at the end of the text that are the token's own name; the bytes before them came from earlier tokens.
  std::vector<OutputPiece> push(std::int32_t id, std::string_view text, std::size_t own, bool is_special);
  // Parses text that came without a token.
  std::vector<OutputPiece> push(std::string_view text);
  // Ends the text and returns the pieces that were held back.
  std::vector<OutputPiece> finish();

  bool is_in_reasoning() const {
    return channels_ != nullptr ? channels_->is_in_reasoning() : state_ == State::kReasoning;
  }
  // Returns whether the token with this id is a marker.
  bool is_marker(std::int32_t id) const;

 private:
  using Marker = Formats::Marker;
  enum class State : std::uint8_t { kText, kReasoning, kCalls };

  void begin(std::string name) override;
  void arguments(std::string_view piece) override;
  void end() override;

  void read();            // handles the part of held_ that can be interpreted
  bool read_text();       // returns false if nothing more can be interpreted yet
  bool read_reasoning();  // returns false if nothing more can be interpreted yet
  void feed(std::string_view text);
  void meet(const Marker& marker);
  void open_calls(const Opening& opening);
  void leave_calls();
  bool counts(const Marker& marker) const;  // returns whether the marker has a meaning in the current state
  void put(PieceKind kind, std::string_view text);
  void put_text(std::string_view text);

  const Formats& formats_;
  const Options options_;
  State state_ = State::kText;
  std::string held_;      // text at the end that may still become a marker
  std::string spaces_;    // spaces at the end of the text so far; dropped if a call follows
  bool at_start_ = true;  // true if only spaces came since the text's beginning or since the last reasoning or call
  bool behind_reasoning_ = false, behind_call_ = false;
  bool in_answer_ = false;  // whether a mark around the answer has been opened
  // The mark that may have closed the answer, with the spaces around it. It is text if other text follows.
  std::string closing_;
  bool may_be_whole_ = true;                 // whether calls without a marker may still begin
  bool has_head_ = false;                    // whether the head of the reasoning may follow
  std::unique_ptr<ChannelReader> channels_;  // reads all the text if the format has channels, else null
  std::unique_ptr<CallReader> reader_;
  const Opening* opening_ = nullptr;  // the opening whose calls reader_ reads
  std::uint32_t n_calls_ = 0;
  std::vector<OutputPiece> out_;
};

}  // namespace zinc_rt::output
