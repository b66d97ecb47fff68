// Text in which some bytes are marked: those that came from outside, such as from a client.
// Thread rule: plain values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zinc_rt {

// Bytes [begin, end).
struct TextSpan {
  std::size_t begin = 0, end = 0;
  friend bool operator==(const TextSpan&, const TextSpan&) = default;
};
// In ascending order; none is empty, and no two touch.
using TextSpans = std::vector<TextSpan>;

// A part of a text with its marks. The text must outlive it.
class MarkedView {
 public:
  MarkedView() = default;
  // All of it is marked, or none.
  explicit MarkedView(std::string_view text, bool is_marked = false)
      : text_(text), marks_(is_marked && !text.empty() ? std::span(&kEverything, 1) : std::span<const TextSpan>()) {}
  MarkedView(std::string_view text, std::span<const TextSpan> marks) : text_(text), marks_(marks) {}

  std::string_view text() const { return text_; }
  std::size_t size() const { return text_.size(); }
  bool has_marks() const { return !marks_.empty(); }
  bool is_all_marked() const {
    return marks_.size() == 1 && marks_[0].begin <= offset_ && marks_[0].end >= offset_ + text_.size();
  }
  // The marks, as positions in this view.
  TextSpans marks() const {
    TextSpans out;
    for (const TextSpan& mark : marks_)
      out.push_back({std::max(mark.begin, offset_) - offset_, std::min(mark.end - offset_, text_.size())});
    return out;
  }

  // REQUIRES: begin <= size(). As for a string_view, n may extend beyond the end.
  MarkedView sub(std::size_t begin, std::size_t n = std::string_view::npos) const {
    MarkedView out;
    out.text_ = text_.substr(begin, n);
    out.offset_ = offset_ + begin;
    if (marks_.empty() || out.text_.empty()) return out;
    const std::size_t end = out.offset_ + out.text_.size();
    const auto first = std::ranges::partition_point(marks_, [&](const TextSpan& s) { return s.end <= out.offset_; });
    const auto last = std::partition_point(first, marks_.end(), [&](const TextSpan& s) { return s.begin < end; });
    out.marks_ = {first, last};
    return out;
  }
  // REQUIRES: `part` is in the memory of this view.
  MarkedView sub(std::string_view part) const {
    return part.empty() ? MarkedView() : sub(static_cast<std::size_t>(part.data() - text_.data()), part.size());
  }

  // Calls visit(text, is_marked) for each longest stretch of one kind, in order.
  template <class Visit>
  void for_each_run(Visit visit) const {
    std::size_t done = 0;
    for (const TextSpan& mark : marks_) {
      const std::size_t begin = std::max(mark.begin, offset_) - offset_;
      const std::size_t end = std::min(mark.end - offset_, text_.size());
      if (begin > done) visit(text_.substr(done, begin - done), false);
      visit(text_.substr(begin, end - begin), true);
      done = end;
    }
    if (done < text_.size()) visit(text_.substr(done), false);
  }

 private:
  static constexpr TextSpan kEverything{0, SIZE_MAX};

  std::string_view text_;
  std::span<const TextSpan> marks_;  // those that have bytes of it
  std::size_t offset_ = 0;           // where it begins in what they count in
};

// `+=` takes literals and numbers, which the writer itself wrote, and types that carry their own marks.
class MarkedText {
 public:
  MarkedText() = default;
  explicit MarkedText(std::string text, bool is_marked = false) : text_(std::move(text)) {
    if (is_marked) mark(0);
  }
  explicit MarkedText(MarkedView view) { *this += view; }

  const std::string& text() const { return text_; }
  const TextSpans& marks() const { return marks_; }
  MarkedView view() const { return {text_, marks_}; }
  std::size_t size() const { return text_.size(); }
  bool empty() const { return text_.empty(); }
  bool has_marks() const { return !marks_.empty(); }
  // The memory of the text and its marks, which may be more than the text's size.
  std::size_t held_bytes() const { return text_.size() + marks_.size() * sizeof(TextSpan); }

  MarkedText& operator+=(char c) {
    text_ += c;
    return *this;
  }
  MarkedText& operator+=(const char* literal) {
    text_ += literal;
    return *this;
  }
  MarkedText& operator+=(MarkedView part) {
    if (!part.has_marks()) {
      text_ += part.text();
      return *this;
    }
    part.for_each_run([&](std::string_view run, bool is_marked) { append(run, is_marked); });
    return *this;
  }
  void append(std::string_view text, bool is_marked) {
    const std::size_t begin = text_.size();
    text_ += text;
    if (is_marked) mark(begin);
  }
  // Unmarked.
  void append_own(std::string_view text) { text_ += text; }
  void reserve(std::size_t n) { text_.reserve(n); }

  // Marks all bytes from `begin` on. REQUIRES: no mark ends after `begin`.
  void mark(std::size_t begin) {
    if (begin >= text_.size()) return;
    if (!marks_.empty() && marks_.back().end == begin) {
      marks_.back().end = text_.size();
    } else {
      marks_.push_back({begin, text_.size()});
    }
  }
  void mark_all() {
    marks_.clear();
    mark(0);
  }
  // REQUIRES: n <= size().
  void truncate(std::size_t n) {
    text_.resize(n);
    while (!marks_.empty() && marks_.back().begin >= n) marks_.pop_back();
    if (!marks_.empty()) marks_.back().end = std::min(marks_.back().end, n);
  }

  std::string take_text() { return std::move(text_); }
  TextSpans take_marks() { return std::move(marks_); }

 private:
  std::string text_;
  TextSpans marks_;
};

}  // namespace zinc_rt
