#include "grammar/regex_arena.h"

#include <algorithm>

namespace zinc_rt::grammar {
namespace {

constexpr std::uint32_t kEnoughWeight = 4096;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

}  // namespace

RegexArena::RegexArena(std::size_t max_nodes) : max_nodes_(max_nodes) {
  slots_.resize(1024);
  make({Kind::kNothing, false, false, kKnownNothing, 0, 0, 0, 0});
  make({Kind::kEpsilon, true, false, kKnownSome, 0, 0, 0, 0});
  make({Kind::kComplement, true, false, kKnownSome, kNothing, 0, 0, 0});
}

std::uint64_t RegexArena::hash_of(const Node& node, std::span<const Regex> parts) const {
  std::uint64_t hash = mix(static_cast<std::uint64_t>(node.kind), node.b);
  if (parts.empty()) hash = mix(hash, node.a);
  hash = mix(hash, std::uint64_t{node.min} << 32 | node.max);
  for (const Regex part : parts) hash = mix(hash, part);
  return hash;
}

bool RegexArena::equal(const Node& a, const Node& b, std::span<const Regex> parts) const {
  if (a.kind != b.kind || a.b != b.b || a.min != b.min || a.max != b.max) return false;
  return parts.empty() ? a.a == b.a : std::ranges::equal(parts_of(a), parts);
}

void RegexArena::grow() {
  slots_.assign(slots_.size() * 2, 0);
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    const bool has_list = node.kind == Kind::kAnyOf || node.kind == Kind::kAllOf;
    std::size_t at = hash_of(node, has_list ? parts_of(node) : std::span<const Regex>()) & (slots_.size() - 1);
    while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = i + 1;
  }
}

Regex RegexArena::make(const Node& node, std::span<const Regex> parts) {
  if (slots_.size() < 2 * (nodes_.size() + 1)) grow();
  work_ += 1 + parts.size();
  std::size_t at = hash_of(node, parts) & (slots_.size() - 1);
  for (; slots_[at] != 0; at = (at + 1) & (slots_.size() - 1)) {
    if (equal(nodes_[slots_[at] - 1], node, parts)) return slots_[at] - 1;
  }
  if (nodes_.size() >= max_nodes_ || lists_.size() + parts.size() > 4 * max_nodes_) {
    is_full_ = true;
    return kNothing;
  }
  const auto number = static_cast<Regex>(nodes_.size());
  nodes_.push_back(node);
  if (!parts.empty()) {
    nodes_.back().a = static_cast<std::uint32_t>(lists_.size());
    lists_.insert(lists_.end(), parts.begin(), parts.end());
  }
  slots_[at] = number + 1;
  return number;
}

Regex RegexArena::bytes(const ByteSet& set) {
  if (set.is_empty()) return kNothing;
  const auto [it, is_new] = set_numbers_.try_emplace(set, static_cast<std::uint32_t>(sets_.size()));
  if (is_new) sets_.push_back(set);
  return make({Kind::kBytes, false, false, kKnownSome, it->second, 0, 0, 0});
}

Regex RegexArena::literal(std::string_view text) {
  Regex made = kEpsilon;
  for (std::size_t i = text.size(); i-- > 0;) {
    ByteSet one;
    one.add(static_cast<std::uint8_t>(text[i]));
    made = concat(bytes(one), made);
  }
  return made;
}

Regex RegexArena::concat(Regex left, Regex right) {
  if (left == kNothing || right == kNothing) return kNothing;
  if (left == kEpsilon) return right;
  if (right == kEpsilon) return left;
  // Concatenations are stored as a(bc), so (ab)c is rewritten.
  std::vector<Regex> heads;
  while (nodes_[left].kind == Kind::kConcat) {
    heads.push_back(nodes_[left].a);
    left = nodes_[left].b;
  }
  heads.push_back(left);
  Regex made = right;
  for (; !heads.empty(); heads.pop_back()) {
    const Regex head = heads.back();
    const Node &a = nodes_[head], &b = nodes_[made];
    made = make({Kind::kConcat, a.nullable && b.nullable, a.may_be_nothing || b.may_be_nothing, 0, head, made, 0, 0});
  }
  return made;
}

Regex RegexArena::concat(std::initializer_list<Regex> parts) {
  Regex made = kEpsilon;
  for (auto part = std::rbegin(parts); part != std::rend(parts); ++part) made = concat(*part, made);
  return made;
}

Regex RegexArena::any_of(std::vector<Regex> parts) {
  std::vector<Regex> flat;
  ByteSet set;
  bool nullable = false, may_be_nothing = true, has_set = false;
  const auto take = [&](Regex part) {
    ++work_;
    const Node& node = nodes_[part];
    if (part == kNothing) return;
    nullable |= node.nullable;
    may_be_nothing &= node.may_be_nothing;
    if (node.kind == Kind::kBytes) {
      has_set = true;
      set = set | sets_[node.a];
    } else {
      flat.push_back(part);
    }
  };
  for (const Regex part : parts) {
    if (part == kAll) return kAll;
    if (nodes_[part].kind == Kind::kAnyOf) {
      for (const Regex inner : parts_of(nodes_[part])) take(inner);
    } else {
      take(part);
    }
  }
  if (has_set) flat.push_back(bytes(set));
  std::ranges::sort(flat);
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  // If an alternative matches the empty text, a separate empty alternative is not needed.
  if (flat.size() > 1 && flat[0] == kEpsilon &&
      std::any_of(flat.begin() + 1, flat.end(), [&](Regex r) { return nodes_[r].nullable; }))
    flat.erase(flat.begin());
  if (flat.empty()) return kNothing;
  if (flat.size() == 1) return flat[0];
  return make({Kind::kAnyOf, nullable, may_be_nothing, 0, 0, static_cast<std::uint32_t>(flat.size()), 0, 0}, flat);
}

Regex RegexArena::all_of(std::vector<Regex> parts) {
  std::vector<Regex> flat;
  for (const Regex part : parts) {
    if (part == kNothing) return kNothing;
    if (part == kAll) continue;
    if (nodes_[part].kind == Kind::kAllOf) {
      const auto inner = parts_of(nodes_[part]);
      flat.insert(flat.end(), inner.begin(), inner.end());
    } else {
      flat.push_back(part);
    }
  }
  std::ranges::sort(flat);
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  const bool nullable = std::ranges::all_of(flat, [&](Regex r) { return nodes_[r].nullable; });
  if (flat.empty()) return kAll;
  if (flat.size() == 1) return flat[0];
  if (flat[0] == kEpsilon) return nullable ? kEpsilon : kNothing;
  ByteSet set = ~ByteSet();
  if (std::ranges::all_of(flat, [&](Regex r) { return nodes_[r].kind == Kind::kBytes; })) {
    for (const Regex part : flat) set = set & sets_[nodes_[part].a];
    return bytes(set);
  }
  return make({Kind::kAllOf, nullable, true, 0, 0, static_cast<std::uint32_t>(flat.size()), 0, 0}, flat);
}

Regex RegexArena::complement(Regex part) {
  if (nodes_[part].kind == Kind::kComplement) return nodes_[part].a;
  return make({Kind::kComplement, !nodes_[part].nullable, true, 0, part, 0, 0, 0});
}

Regex RegexArena::repeat(Regex part, std::uint32_t min, std::uint32_t max) {
  if (max == 0 || part == kEpsilon) return kEpsilon;
  if (part == kNothing) return min == 0 ? kEpsilon : kNothing;
  if (nodes_[part].nullable) min = 0;
  if (min == 1 && max == 1) return part;
  const Node& node = nodes_[part];
  const bool is_star = node.kind == Kind::kRepeat && node.min == 0 && node.max == kUnbounded;
  if (part == kAll || is_star) return part;
  if (min == 0 && max == 1) return any_of({kEpsilon, part});
  return make({Kind::kRepeat, min == 0, min != 0 && node.may_be_nothing, 0, part, 0, min, max});
}

Regex RegexArena::multiple_of(std::uint32_t divisor, std::uint32_t rest, std::uint32_t n_fraction,
                              std::uint32_t n_left) {
  // `filled` is the number with zeros for the missing digits. `n_ahead` is how many different numbers the missing
  // digits can form, at most `divisor`.
  std::uint64_t filled = rest, n_ahead = 1;
  for (std::uint32_t i = std::min(n_left, n_fraction); i > 0; --i) {
    filled = filled * 10 % divisor;
    n_ahead = std::min<std::uint64_t>(n_ahead * 10, divisor);
  }
  const std::uint64_t missing = (divisor - filled) % divisor;
  if (n_left != kUnbounded && missing >= n_ahead) return kNothing;
  return make({Kind::kMultiple, missing == 0, false, kKnownSome, divisor, rest, n_fraction, n_left});
}

Regex RegexArena::literal_tree(std::span<const std::string_view> sorted, std::size_t depth) {
  if (sorted.size() == 1) return literal(sorted[0].substr(depth));
  std::vector<Regex> parts;
  while (!sorted.empty()) {
    if (sorted[0].size() == depth) {
      parts.push_back(kEpsilon);
      sorted = sorted.subspan(1);
      continue;
    }
    std::size_t n = 1;
    while (n < sorted.size() && sorted[n][depth] == sorted[0][depth]) ++n;
    // The whole common beginning of the group is taken at once, so that the recursion is only as deep as the branching.
    std::size_t same = depth + 1;
    const std::string_view first = sorted[0], last = sorted[n - 1];
    while (same < first.size() && same < last.size() && first[same] == last[same]) ++same;
    parts.push_back(concat(literal(first.substr(depth, same - depth)), literal_tree(sorted.first(n), same)));
    sorted = sorted.subspan(n);
  }
  return any_of(std::move(parts));
}

Regex RegexArena::any_literal(std::vector<std::string_view> texts) {
  std::ranges::sort(texts);
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return texts.empty() ? kNothing : literal_tree(texts, 0);
}

std::uint32_t RegexArena::weight(Regex regex) const {
  // Estimates the cost of a derivative by counting the nodes that it visits. A few levels suffice for an estimate.
  const auto count = [this](auto& self, Regex r, int depth) -> std::uint32_t {
    const Node& node = nodes_[r];
    std::uint32_t sum = 1;
    if (depth == 0) return sum;
    if (node.kind == Kind::kAnyOf || node.kind == Kind::kAllOf) {
      for (const Regex part : parts_of(node))
        if ((sum += self(self, part, depth - 1)) > kEnoughWeight) break;
    } else if (node.kind == Kind::kConcat || node.kind == Kind::kComplement || node.kind == Kind::kRepeat) {
      sum += self(self, node.a, depth - 1);
    }
    return sum;
  };
  return count(count, regex, 4);
}

std::size_t RegexArena::n_bytes() const {
  return nodes_.capacity() * sizeof(Node) + lists_.capacity() * sizeof(Regex) + slots_.capacity() * 4 +
         derivatives_.size() * 32 + sets_.size() * 128;
}

}  // namespace zinc_rt::grammar
