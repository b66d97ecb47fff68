#include "output/channel_reader.h"

#include <algorithm>
#include <utility>

namespace zinc_rt::output {
namespace {

constexpr std::string_view kStart = "<|start|>", kChannelMark = "<|channel|>", kMessage = "<|message|>",
                           kConstrain = "<|constrain|>";
constexpr std::string_view kEnds[] = {"<|end|>", "<|call|>", "<|return|>"};
constexpr std::string_view kTo = "to=", kFunctions = "functions.", kAnalysis = "analysis";

std::string_view without_spaces(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  return text;
}
std::string_view first_word(std::string_view text) {
  text = without_spaces(text);
  return text.substr(0, text.find_first_of(kSpaces));
}
// Returns the recipient that a part of a header names, or an empty text.
std::string_view recipient_of(std::string_view part) {
  const auto at = part.find(kTo);
  return at == std::string_view::npos ? std::string_view() : first_word(part.substr(at + kTo.size()));
}

}  // namespace

bool has_channels(std::string_view prompt) {
  return prompt.contains(kStart) && prompt.contains(kMessage);
}

void ChannelReader::feed(std::string_view text) {
  if (text.empty()) return;
  if (state_ == State::kBody) return put(text);
  std::string& part = header_[part_];
  part.append(text.substr(0, kMaxNameBytes - std::min(part.size(), kMaxNameBytes)));
  if (state_ == State::kHeader) return;
  const std::string_view there = without_spaces(part);
  if (there.starts_with(kTo) || kTo.starts_with(there)) return;
  // This is no recipient, so it is the answer itself.
  state_ = State::kBody;
  kind_ = PieceKind::kText;
  put(std::exchange(part, {}));
}

bool ChannelReader::meet(std::string_view token) {
  if (std::ranges::find(kEnds, token) != std::end(kEnds)) {
    end_message();
    return true;
  }
  if (token == kStart) {
    end_message();
    state_ = State::kHeader;
    return true;
  }
  if (token == kChannelMark) {
    if (state_ == State::kBody) end_message();
    state_ = State::kHeader;
    part_ = kChannel;
    return true;
  }
  if (state_ == State::kBody || (token != kConstrain && token != kMessage)) return false;
  if (token == kMessage)
    begin_body();
  else
    state_ = State::kHeader, part_ = kConstraint;
  return true;
}

void ChannelReader::begin_body() {
  state_ = State::kBody;
  std::string_view to = recipient_of(header_[kChannel]);
  if (to.empty()) to = recipient_of(header_[kRole]);
  if (with_calls_ && to.starts_with(kFunctions)) {
    kind_ = PieceKind::kCallArguments;
    arguments_.restart();
    out_.push_back({PieceKind::kCallBegin, n_calls_++, std::string(to.substr(kFunctions.size())), {}});
    return;
  }
  // A message to a tool that is not the request's is part of how the model works on the answer.
  const bool is_for_others = !to.empty() && !to.starts_with(kFunctions);
  kind_ = is_for_others || first_word(header_[kChannel]) == kAnalysis ? PieceKind::kReasoning : PieceKind::kText;
  bool& has_some = kind_ == PieceKind::kText ? has_text_ : has_reasoning_;
  if (has_some) put("\n\n");
}

void ChannelReader::end_message() {
  if (state_ == State::kBody && kind_ == PieceKind::kCallArguments)
    out_.push_back({PieceKind::kCallEnd, n_calls_ - 1, {}, {}});
  state_ = State::kBetween;
  part_ = kRole;
  for (std::string& part : header_) part.clear();
}

void ChannelReader::put(std::string_view text) {
  if (kind_ == PieceKind::kCallArguments) arguments_.push(text);
  (kind_ == PieceKind::kText ? has_text_ : has_reasoning_) |= kind_ != PieceKind::kCallArguments;
  if (!out_.empty() && out_.back().kind == kind_)
    out_.back().text += text;
  else
    out_.push_back({kind_, kind_ == PieceKind::kCallArguments ? n_calls_ - 1 : 0, std::string(text), {}});
}

void ChannelReader::finish() {
  if (state_ == State::kBody && kind_ == PieceKind::kCallArguments && !arguments_.is_done()) return;
  if (state_ == State::kBetween && !header_[kRole].empty()) {
    kind_ = PieceKind::kText;
    put(std::exchange(header_[kRole], {}));
  }
  end_message();
}

std::vector<OutputPiece> ChannelReader::take() {
  return std::exchange(out_, {});
}

}  // namespace zinc_rt::output
