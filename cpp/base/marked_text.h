// MarkedText is text in which the bytes that came from outside, such as from a client, are marked. The tokenizer
// matches no control tokens (such as <|im_end|>) in marked bytes, so that a client cannot forge the structure of a
// prompt.
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

// TextSpan is a range of bytes of a text: positions [begin, end).
struct TextSpan {
  std::size_t begin = 0, end = 0;
  friend bool operator==(const TextSpan&, const TextSpan&) = default;
};
// TextSpans are in ascending order. No span is empty, and no two overlap or touch.
using TextSpans = std::vector<TextSpan>;

// MarkedView is a view of a part of a text and of its marks. The text must outlive it.
class MarkedView {
 public:
  MarkedView() = default;
  // Creates a view in which the whole text is marked, or nothing.
  explicit MarkedView(std::string_view text, bool is_marked = false)
      : text_(text), marks_(is_marked && !text.empty() ? std::span(&kEverything, 1) : std::span<const TextSpan>()) {}
  MarkedView(std::string_view text, std::span<const TextSpan> marks) : text_(text), marks_(marks) {}

  std::string_view text() const { return text_; }
  std::size_t size() const { return text_.size(); }
  bool has_marks() const { return !marks_.empty(); }
  bool is_all_marked() const {
    return marks_.size() == 1 && marks_[0].begin <= offset_ && marks_[0].end >= offset_ + text_.size();
  }
  // Returns the marked spans of this view, as positions relative to its begin.
  TextSpans marks() const {
    TextSpans out;
    for (const TextSpan& mark : marks_)
      out.push_back({std::max(mark.begin, offset_) - offset_, std::min(mark.end - offset_, text_.size())});
    return out;
  }

  // Returns the n bytes from `begin` on, with their marks. n may exceed the number of bytes that follow, as in
  // std::string_view::substr. REQUIRES: begin <= size().
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
  // Returns the view of `part` with its marks. REQUIRES: `part` lies in the memory of this view.
  MarkedView sub(std::string_view part) const {
    return part.empty() ? MarkedView() : sub(static_cast<std::size_t>(part.data() - text_.data()), part.size());
  }

  // Calls visit(part, is_marked) for each maximal part that is wholly marked or wholly unmarked, in order.
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
  std::span<const TextSpan> marks_;  // marks of the whole text that overlap this view
  std::size_t offset_ = 0;           // where this view begins in the text whose positions marks_ contains
};

// MarkedText is a text with marks that is built by appending. `+=` takes literals and single characters, which stay
// unmarked because the program wrote them, and views, which bring their own marks. Any other text could come from a
// client or not, so the caller must choose append() or append_own().
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
  // Returns how much memory the text and its marks take, in bytes.
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
  // Appends text that the program itself wrote. It is not marked.
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
  // Cuts the text, and its marks, to the first n bytes. REQUIRES: n <= size().
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
