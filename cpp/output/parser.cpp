#include "output/parser.h"

#include <algorithm>
#include <utility>

namespace zinc_rt::output {

Formats::Formats(const CallFormat* calls, const ReasoningFormat* reasoning, const FindToken& find, bool has_channels,
                 const AnswerFrame* frame)
    : calls_(calls),
      reasoning_(reasoning),
      has_channels_(has_channels || (calls != nullptr && calls->openings[0].syntax == Syntax::kHeader)) {
  if (has_channels_) {
    if (calls == nullptr) return;
    for (const Opening& opening : calls->openings) signs_.emplace_back(opening.marker, find(opening.marker));
    for (const std::string_view text : calls->tokens) signs_.emplace_back(text, find(text));
    return;
  }
  const auto add = [&](std::string_view text, Role role, const Opening* opening = nullptr) {
    markers_.push_back({text, role, opening, find(text)});
  };
  add(reasoning->open, Role::kReasoningOpen);
  add(reasoning->close, Role::kReasoningClose);
  if (frame != nullptr) {
    add(frame->open, Role::kAnswerOpen);
    add(frame->close, Role::kAnswerClose);
  }
  if (calls == nullptr) return;
  for (const auto& opening : calls->openings)
    if (opening.marker.empty())
      whole_ = &opening;
    else
      add(opening.marker, Role::kCall, &opening);
  for (const auto text : calls->dropped) add(text, Role::kDropped);
  for (const auto& opening : calls->openings)
    if (!opening.close.empty()) signs_.emplace_back(opening.close, find(opening.close));
  if (calls->mark.empty()) return;
  signs_.emplace_back(calls->mark, find(calls->mark));
  if (calls->openings[0].marker.contains(calls->mark)) within_opening_ = signs_.back().second;
}

std::optional<std::int32_t> Formats::token_of(std::string_view marker) const {
  if (const auto it = std::ranges::find(markers_, marker, &Marker::text); it != markers_.end()) return it->id;
  const auto it = std::ranges::find(signs_, marker, &std::pair<std::string_view, std::optional<std::int32_t>>::first);
  return it == signs_.end() ? std::nullopt : it->second;
}

std::vector<std::int32_t> Formats::token_ids() const {
  std::vector<std::int32_t> out;
  for (const Marker& marker : markers_)
    if (marker.id) out.push_back(*marker.id);
  for (const auto& [text, id] : signs_)
    if (id) out.push_back(*id);
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

bool Formats::leaves_reasoning_open(std::string_view prompt) const {
  if (reasoning_ == nullptr || has_channels_) return false;
  const auto open = prompt.rfind(reasoning_->open), close = prompt.rfind(reasoning_->close);
  return open != std::string_view::npos && (close == std::string_view::npos || close < open);
}

Parser::Parser(const Formats& formats, Options options) : formats_(formats), options_(std::move(options)) {
  if (options_.in_reasoning) state_ = State::kReasoning;
  if (formats.has_channels()) channels_ = std::make_unique<ChannelReader>(options_.with_calls);
}
Parser::~Parser() = default;

bool Parser::is_marker(std::int32_t id) const {
  return std::ranges::find(formats_.markers_, std::optional(id), &Marker::id) != formats_.markers_.end();
}

bool Parser::counts(const Marker& marker) const {
  using Role = Formats::Role;
  switch (marker.role) {
    case Role::kReasoningOpen: return state_ == State::kText && at_start_;
    case Role::kReasoningClose: return state_ == State::kReasoning;
    case Role::kAnswerOpen: return state_ == State::kText && at_start_ && !in_answer_;
    case Role::kAnswerClose: return state_ == State::kText && in_answer_;
    // While reasoning is open, only a marker that is a single token begins a call. If the marker is plain text, the
    // model may just be writing about it.
    case Role::kCall: return options_.with_calls && (state_ == State::kText || marker.id);
    case Role::kDropped: return options_.with_calls && state_ == State::kText;
  }
  return false;
}

std::vector<OutputPiece> Parser::push(std::int32_t id, std::string_view text, std::size_t own, bool is_special) {
  const auto name = text.substr(text.size() - own);
  if (channels_ != nullptr) {
    channels_->feed(text.substr(0, text.size() - own));
    const bool is_mark = is_special && own > 0 && channels_->meet(name);
    if (!is_mark && !(is_special && options_.skips_special)) channels_->feed(name);
    return channels_->take();
  }
  feed(text.substr(0, text.size() - own));
  if (state_ == State::kCalls) {
    feed(name);
  } else if (own > 0) {
    const auto marker = std::ranges::find(formats_.markers_, std::optional(id), &Marker::id);
    const auto is_marker = [&] { return marker != formats_.markers_.end() && counts(*marker); };
    if (is_marker()) {
      // A marker that is a token ends the text before it, so the held text can no longer become a marker.
      state_ == State::kReasoning ? put(PieceKind::kReasoning, held_) : put_text(held_);
      held_.clear();
    }
    if (is_marker())
      meet(*marker);
    else if (!is_special || !options_.skips_special || (options_.with_calls && id == formats_.within_opening_))
      feed(name);
  }
  return std::exchange(out_, {});
}

std::vector<OutputPiece> Parser::push(std::string_view text) {
  if (channels_ != nullptr) {
    channels_->feed(text);
    return channels_->take();
  }
  feed(text);
  return std::exchange(out_, {});
}

std::vector<OutputPiece> Parser::finish() {
  if (channels_ != nullptr) {
    channels_->finish();
    return channels_->take();
  }
  while (state_ == State::kCalls) {
    reader_->finish();
    leave_calls();
    read();
  }
  if (state_ == State::kReasoning)
    put(PieceKind::kReasoning, held_);
  else
    put_text(held_);
  held_.clear();
  if (!(at_start_ && (behind_reasoning_ || behind_call_))) put(PieceKind::kText, spaces_);
  spaces_.clear();
  closing_.clear();
  return std::exchange(out_, {});
}

void Parser::feed(std::string_view text) {
  if (text.empty()) return;
  if (state_ == State::kCalls) {
    reader_->push(text);
    if (reader_->state() == CallReader::State::kOpen) return;
    leave_calls();
  } else {
    held_ += text;
  }
  read();
}

void Parser::read() {
  while (state_ == State::kText ? read_text() : state_ == State::kReasoning && read_reasoning()) {
  }
}

bool Parser::read_text() {
  if (held_.empty()) return false;
  if (formats_.whole_ != nullptr && options_.with_calls && at_start_ && may_be_whole_) {
    const auto first = held_.find_first_not_of(kSpaces);
    const bool is_json = formats_.whole_->syntax == Syntax::kJson;
    if (first != std::string::npos && (!is_json || held_[first] == '{')) {
      put_text(std::string_view(held_).substr(0, first));
      held_.erase(0, first);
      open_calls(*formats_.whole_);
      return true;
    }
  }
  // Finds the first complete marker, and how much text at the end may still become a marker.
  const Marker* met = nullptr;
  std::size_t at = std::string::npos, hold = 0;
  const auto first = held_.find_first_not_of(kSpaces);
  for (const auto& marker : formats_.markers_) {
    if (marker.id || !counts(marker)) continue;
    // A marker that opens reasoning or the answer counts only before any other text.
    const bool is_first = marker.role == Formats::Role::kReasoningOpen || marker.role == Formats::Role::kAnswerOpen;
    auto found = held_.find(marker.text);
    if (is_first && found != first) found = std::string::npos;
    if (found < at) at = found, met = &marker;
    const auto n = overlap(held_, marker.text);
    if (!is_first || n == held_.size() - std::min(first, held_.size())) hold = std::max(hold, n);
  }
  if (met == nullptr) {
    put_text(std::string_view(held_).substr(0, held_.size() - hold));
    held_.erase(0, held_.size() - hold);
    return false;
  }
  put_text(std::string_view(held_).substr(0, at));
  held_.erase(0, at + met->text.size());
  meet(*met);
  return true;
}

bool Parser::read_reasoning() {
  if (has_head_) {
    const auto head = formats_.reasoning_->head;
    if (held_.size() < head.size() && head.starts_with(held_)) return false;
    if (held_.starts_with(head)) held_.erase(0, head.size());
    has_head_ = false;
  }
  const auto close = std::ranges::find(formats_.markers_, Formats::Role::kReasoningClose, &Marker::role);
  const auto at = close->id ? std::string::npos : held_.find(close->text);
  const auto n = at != std::string::npos ? at : held_.size() - (close->id ? 0 : overlap(held_, close->text));
  put(PieceKind::kReasoning, std::string_view(held_).substr(0, n));
  held_.erase(0, n);
  if (at == std::string::npos) return false;
  held_.erase(0, close->text.size());
  meet(*close);
  return true;
}

void Parser::meet(const Marker& marker) {
  using Role = Formats::Role;
  switch (marker.role) {
    case Role::kReasoningOpen:
      state_ = State::kReasoning;
      has_head_ = !formats_.reasoning_->head.empty();
      spaces_.clear();
      break;
    case Role::kReasoningClose:
      state_ = State::kText;
      at_start_ = behind_reasoning_ = may_be_whole_ = true;
      break;
    case Role::kAnswerOpen:
      in_answer_ = behind_reasoning_ = true;
      spaces_.clear();
      break;
    case Role::kAnswerClose: closing_ += std::exchange(spaces_, {}) + std::string(marker.text); break;
    case Role::kCall: open_calls(*marker.opening); break;
    case Role::kDropped: break;
  }
}

void Parser::open_calls(const Opening& opening) {
  state_ = State::kCalls;
  opening_ = &opening;
  reader_ = make_reader({formats_.calls_, &opening, options_.tools.get(), opening.marker.empty()}, *this);
  auto text = opening.in_body ? std::string(opening.marker) : std::string();
  text += std::exchange(held_, {});
  reader_->push(text);
  if (reader_->state() != CallReader::State::kOpen) leave_calls();
}

void Parser::leave_calls() {
  const auto reader = std::move(reader_);
  held_ = reader->rest();
  state_ = State::kText;
  if (reader->has_begun()) {
    at_start_ = behind_call_ = true;
    behind_reasoning_ = false;
    if (reader->state() == CallReader::State::kFailed) may_be_whole_ = false;
    return;
  }
  // The text was not a call, so the marker is ordinary text and is not examined again.
  if (opening_->marker.empty()) may_be_whole_ = false;
  put_text(opening_->marker);
  if (opening_->in_body) held_.erase(0, opening_->marker.size());
}

void Parser::put(PieceKind kind, std::string_view text) {
  if (text.empty()) return;
  if (!out_.empty() && out_.back().kind == kind)
    out_.back().text += text;
  else
    out_.push_back({kind, kind == PieceKind::kCallArguments ? n_calls_ - 1 : 0, std::string(text), {}});
}

void Parser::put_text(std::string_view text) {
  if (text.empty()) return;
  if (!closing_.empty()) {
    if (text.find_first_not_of(kSpaces) == std::string_view::npos) {
      closing_ += text;
      return;
    }
    at_start_ = false;
    put(PieceKind::kText, std::exchange(closing_, {}));
  }
  if (at_start_ && behind_reasoning_) {
    const auto first = text.find_first_not_of(kSpaces);
    if (first == std::string_view::npos) return;
    text.remove_prefix(first);
  }
  const auto last = text.find_last_not_of(kSpaces);
  const bool holds_spaces = options_.with_calls || in_answer_;
  if (last == std::string_view::npos && (at_start_ || holds_spaces)) {
    spaces_ += text;
    return;
  }
  at_start_ = false;
  put(PieceKind::kText, std::exchange(spaces_, {}));
  const auto n = holds_spaces ? last + 1 : text.size();
  put(PieceKind::kText, text.substr(0, n));
  spaces_ = text.substr(n);
}

void Parser::begin(std::string name) {
  spaces_.clear();
  closing_.clear();
  at_start_ = true;
  out_.push_back({PieceKind::kCallBegin, n_calls_++, std::move(name), {}});
}
void Parser::arguments(std::string_view piece) {
  put(PieceKind::kCallArguments, piece);
}
void Parser::end() {
  out_.push_back({PieceKind::kCallEnd, n_calls_ - 1, {}, {}});
}

}  // namespace zinc_rt::output
