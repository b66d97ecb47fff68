// A SpanList says what a request computes, position by position: a list of spans, each of consecutive positions of one
// kind. Token ids are the only kind today, so a list has one span. Another kind, such as rows of floats computed from
// an image, would be a second member here. Such a kind would have to provide what the scheduler and the prefix cache
// need: the number of positions, a part of them, the common prefix of two lists, the hash of a page, and a copy for a
// step. Code that needs ids (samplers, files of prefixes) calls ids().
// Thread rule: plain values.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/common/kv_page.h"
#include "mem/siphash.h"

namespace zinc_rt::mem {

// SpanView is a view of consecutive positions of a list, as std::string_view is of a string.
class SpanView {
 public:
  SpanView() = default;
  template <class Ids>
    requires std::convertible_to<const Ids&, std::span<const std::int32_t>>
  SpanView(const Ids& ids) : ids_(ids) {}

  std::uint32_t size() const { return static_cast<std::uint32_t>(ids_.size()); }  // returns the number of positions
  bool empty() const { return ids_.empty(); }
  SpanView first(std::size_t n) const { return ids_.first(n); }
  SpanView part(std::size_t begin, std::size_t n) const { return ids_.subspan(begin, n); }
  SpanView from(std::size_t begin) const { return ids_.subspan(begin); }
  std::span<const std::int32_t> ids() const { return ids_; }

  // Returns the length of the common prefix of two views, in positions.
  friend std::uint32_t n_shared(SpanView a, SpanView b);
  friend bool operator==(SpanView a, SpanView b) { return a.size() == b.size() && n_shared(a, b) == a.size(); }
  // Returns the hash under which the prefix cache finds a page with these positions below the node `parent`. REQUIRES:
  // no more than kPageTokens positions.
  std::uint64_t page_hash(SipKey key, std::uint32_t parent) const;

 private:
  std::span<const std::int32_t> ids_;
};

// SpanList is a list that owns its positions, such as those of a request. It may also hold a guess (draft) of the
// positions that come next. size() and all views except with_guess() exclude the guess. A change of the list removes
// the guess.
class SpanList {
 public:
  SpanList() = default;
  explicit SpanList(SpanView view) { append(view); }

  std::uint32_t size() const { return n_; }  // number of positions without the guess
  bool empty() const { return n_ == 0; }
  SpanView view() const { return ids(); }
  SpanView part(std::size_t begin, std::size_t n) const { return view().part(begin, n); }
  std::span<const std::int32_t> ids() const { return std::span(ids_).first(n_); }

  // Reserves memory. Appending does not allocate while the capacity suffices for the list and its guess.
  void reserve(std::size_t n_positions) { ids_.reserve(n_positions); }
  void append(SpanView view) {
    drop_guess();
    ids_.insert(ids_.end(), view.ids().begin(), view.ids().end());
    n_ = static_cast<std::uint32_t>(ids_.size());
  }
  void push_back(std::int32_t id) {
    drop_guess();
    ids_.push_back(id);
    ++n_;
  }
  void clear() {
    ids_.clear();
    n_ = 0;
  }

  void guess(std::span<const std::int32_t> ids) {
    drop_guess();
    ids_.insert(ids_.end(), ids.begin(), ids.end());
  }
  void cut_guess(std::uint32_t n) {
    if (n < n_guessed()) ids_.resize(n_ + n);
  }
  void drop_guess() { ids_.resize(n_); }
  std::uint32_t n_guessed() const { return static_cast<std::uint32_t>(ids_.size()) - n_; }
  std::span<const std::int32_t> guessed() const { return std::span(ids_).subspan(n_); }
  // Returns the list followed by the guess.
  SpanView with_guess() const { return ids_; }
  // Makes the first n guessed positions part of the list. The rest stays a guess. REQUIRES: n <= n_guessed().
  void confirm(std::uint32_t n) { n_ += n; }

 private:
  std::vector<std::int32_t> ids_;
  std::uint32_t n_ = 0;
};

// PageSpans holds the positions of one page in place, so that a node of the prefix cache allocates nothing.
class PageSpans {
 public:
  std::uint32_t size() const { return n_; }
  bool empty() const { return n_ == 0; }
  SpanView view() const { return std::span(ids_).first(n_); }
  void assign(SpanView view);  // REQUIRES: no more than kPageTokens positions

 private:
  std::int32_t ids_[kPageTokens] = {};
  std::uint32_t n_ = 0;
};

}  // namespace zinc_rt::mem
