// RegexArena stores regular expressions over bytes and computes their derivatives.
//
// A regex is the number of a node. Equal regexes have equal numbers, because nodes are shared and normalized when they
// are made (alternatives sorted, concatenations to the right, neutral parts dropped). The derivative of a regex by a
// byte is the regex of what may follow that byte (Brzozowski 1964). Because of the normal form a regex has finitely
// many derivatives.
// Thread rule: one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/byte_set.h"

namespace zinc_rt::grammar {

using Regex = std::uint32_t;

class RegexArena {
 public:
  static constexpr Regex kNothing = 0;  // matches no text
  static constexpr Regex kEpsilon = 1;  // matches only the empty text
  static constexpr Regex kAll = 2;      // matches every text
  static constexpr std::uint32_t kUnbounded = UINT32_MAX;

  // Above max_nodes, new regexes become kNothing and is_full() stays true. Check is_full() before you use new regexes.
  explicit RegexArena(std::size_t max_nodes);
  bool is_full() const { return is_full_; }
  void set_max_nodes(std::size_t max_nodes) { max_nodes_ = max_nodes; }
  // Starts a new count of the parts that are combined. Above the limit, derivatives are kNothing and is_over() is true
  // until the next call. Answers that were given meanwhile may be wrong.
  void start_work(std::uint64_t limit) {
    work_ = 0;
    work_limit_ = limit;
  }
  bool is_over() const { return work_ > work_limit_; }

  Regex bytes(const ByteSet& set);
  Regex literal(std::string_view text);
  Regex concat(Regex left, Regex right);
  Regex concat(std::initializer_list<Regex> parts);
  Regex any_of(std::vector<Regex> parts);
  Regex all_of(std::vector<Regex> parts);
  Regex complement(Regex part);
  Regex repeat(Regex part, std::uint32_t min, std::uint32_t max);
  Regex optional(Regex part) { return any_of({kEpsilon, part}); }
  // Returns a regex for decimal digits d such that the number (rest)(d) is a multiple of `divisor`. If n_fraction > 0,
  // the number has n_fraction digits after its point; a point may stand among the digits, and zeros of the fraction may
  // be left out or added. n_left is how many digits of the fraction follow; kUnbounded means that the point has not
  // come yet. REQUIRES: 0 < divisor < 2^28.
  Regex multiple_of(std::uint32_t divisor, std::uint32_t rest = 0, std::uint32_t n_fraction = 0,
                    std::uint32_t n_left = kUnbounded);
  // Returns a regex for any of these texts. It is a tree that shares common beginnings, so a derivative costs no more
  // than the texts' variety.
  Regex any_literal(std::vector<std::string_view> texts);

  Regex derivative(Regex regex, std::uint8_t byte);
  bool is_nullable(Regex regex) const { return nodes_[regex].nullable; }
  // Returns whether no text matches. Lowers `budget` by the work that it uses. If the budget runs out it returns false;
  // otherwise the result is exact.
  bool is_nothing(Regex regex, std::uint64_t& budget);
  // Returns the cost of a derivative of the regex: the number of alternatives and parts of conjunctions that it visits.
  std::uint32_t weight(Regex regex) const;

  // Group the byte values into classes. Two bytes are in one class if no regex so far distinguishes them.
  std::size_t n_classes();
  const std::array<std::uint8_t, 256>& class_of();
  const std::vector<std::uint8_t>& representatives();  // returns one byte of each class

  std::size_t n_nodes() const { return nodes_.size(); }
  std::size_t n_bytes() const;

 private:
  enum class Kind : std::uint8_t {
    kBytes,
    kConcat,
    kAnyOf,
    kAllOf,
    kComplement,
    kRepeat,
    kMultiple,
    kNothing,
    kEpsilon
  };
  struct Node {
    Kind kind;
    bool nullable;
    bool may_be_nothing;  // contains a conjunction or a complement, so only a search tells whether any text matches
    std::uint8_t known = 0;
    // The meaning of a and b depends on the kind. For a concatenation or similar, they are the parts. For a byte set, a
    // is the set's number. For any_of and all_of, a is the index of the first part in lists_, and b the number of
    // parts. For a multiple, a is the divisor and b the rest.
    std::uint32_t a, b;
    std::uint32_t min, max;  // bounds of a repeat; n_fraction and n_left of a multiple
  };
  static constexpr std::uint8_t kKnownSome = 1, kKnownNothing = 2;

  Regex make(const Node& node, std::span<const Regex> parts = {});
  std::uint64_t hash_of(const Node& node, std::span<const Regex> parts) const;
  bool equal(const Node& a, const Node& b, std::span<const Regex> parts) const;
  std::span<const Regex> parts_of(const Node& node) const { return {lists_.data() + node.a, node.b}; }
  Regex derive(Regex regex, std::uint8_t byte);
  void find_classes();
  void grow();
  Regex literal_tree(std::span<const std::string_view> sorted, std::size_t depth);

  std::size_t max_nodes_;
  bool is_full_ = false;
  std::uint64_t work_ = 0, work_limit_ = UINT64_MAX;
  // Index: the regex. lists_ holds the parts of any_of and all_of, sets_ the byte sets.
  std::vector<Node> nodes_;
  std::vector<Regex> lists_;
  std::vector<ByteSet> sets_;
  std::map<ByteSet, std::uint32_t> set_numbers_;
  // slots_ is a hash table over nodes_ with open addressing. A slot holds the number of a node + 1, or 0 if it is free.
  std::vector<std::uint32_t> slots_;
  // Cache of derivatives. Key: regex << 8 | byte.
  std::unordered_map<std::uint64_t, Regex> derivatives_;
  std::size_t n_classed_sets_ = 0;
  std::array<std::uint8_t, 256> class_of_ = {};
  std::vector<std::uint8_t> representatives_;
};

}  // namespace zinc_rt::grammar
