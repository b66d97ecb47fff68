// Implements derivatives of regexes, the search for a matching text, and the classes of bytes.
#include <algorithm>
#include <cstdint>
#include <unordered_set>

#include "grammar/regex_arena.h"

namespace zinc_rt::grammar {

Regex RegexArena::derivative(Regex regex, std::uint8_t byte) {
  const Node& node = nodes_[regex];
  // The derivatives of the following two kinds are cheaper to compute than to look up, so they are not cached.
  if (node.kind == Kind::kBytes) return sets_[node.a].has(byte) ? kEpsilon : kNothing;
  if (node.kind == Kind::kConcat && nodes_[node.a].kind == Kind::kBytes)
    return sets_[nodes_[node.a].a].has(byte) ? node.b : kNothing;
  const std::uint64_t key = std::uint64_t{regex} << 8 | byte;
  if (const auto it = derivatives_.find(key); it != derivatives_.end()) return it->second;
  if (is_over()) return kNothing;
  const Regex made = derive(regex, byte);
  if (!is_full_ && !is_over()) derivatives_.emplace(key, made);
  return made;
}

Regex RegexArena::derive(Regex regex, std::uint8_t byte) {
  const Node node = nodes_[regex];  // a copy, because the table moves when it grows
  switch (node.kind) {
    case Kind::kNothing:
    case Kind::kEpsilon: return kNothing;
    case Kind::kBytes: return sets_[node.a].has(byte) ? kEpsilon : kNothing;
    case Kind::kConcat: {
      const Regex first = concat(derivative(node.a, byte), node.b);
      if (!nodes_[node.a].nullable) return first;
      return any_of({first, derivative(node.b, byte)});
    }
    case Kind::kAnyOf:
    case Kind::kAllOf: {
      std::vector<Regex> parts(parts_of(node).begin(), parts_of(node).end());
      for (Regex& part : parts) part = derivative(part, byte);
      return node.kind == Kind::kAnyOf ? any_of(std::move(parts)) : all_of(std::move(parts));
    }
    case Kind::kComplement: return complement(derivative(node.a, byte));
    case Kind::kRepeat: {
      const std::uint32_t min = node.min == 0 ? 0 : node.min - 1;
      const std::uint32_t max = node.max == kUnbounded ? kUnbounded : node.max - 1;
      const Regex first = derivative(node.a, byte);
      return first == kNothing ? kNothing : concat(first, repeat(node.a, min, max));
    }
    case Kind::kMultiple:
      if (byte == '.' && node.min > 0 && node.max == kUnbounded) return multiple_of(node.a, node.b, node.min, node.min);
      if (byte < '0' || byte > '9') return kNothing;
      if (node.max == 0) return byte == '0' ? regex : kNothing;
      return multiple_of(node.a, (node.b * 10 + (byte - '0')) % node.a, node.min,
                         node.max == kUnbounded ? kUnbounded : node.max - 1);
  }
  return kNothing;
}

bool RegexArena::is_nothing(Regex regex, std::uint64_t& budget) {
  const auto is_some = [this](Regex r) {
    const Node& node = nodes_[r];
    return node.nullable || node.known == kKnownSome || (!node.may_be_nothing && r != kNothing);
  };
  const auto is_none = [this](Regex r) { return nodes_[r].known == kKnownNothing; };
  if (is_some(regex)) return false;
  if (is_none(regex)) return true;
  // Step is one step of the depth-first search for a matching text. If the search finds a text, every regex on the path
  // to it matches some text.
  struct Step {
    Regex regex;
    std::size_t next = 0;
  };
  std::vector<Step> path = {{regex}};
  std::unordered_set<Regex> seen = {regex};
  const std::vector<std::uint8_t> bytes = representatives();
  while (!path.empty()) {
    Step& step = path.back();
    if (step.next == bytes.size()) {
      path.pop_back();
      continue;
    }
    if (budget == 0 || is_full_ || is_over()) return false;
    --budget;
    const Regex after = derivative(step.regex, bytes[step.next++]);
    if (is_some(after)) {
      for (const Step& on_path : path) nodes_[on_path.regex].known = kKnownSome;
      return false;
    }
    if (!is_none(after) && seen.insert(after).second) path.push_back({after});
  }
  if (is_full_ || is_over()) return false;
  for (const Regex r : seen) nodes_[r].known = kKnownNothing;
  return true;
}

void RegexArena::find_classes() {
  if (n_classed_sets_ == sets_.size() && !representatives_.empty()) return;
  // Each digit and the point form a class of their own, because the regexes of multiples distinguish them.
  if (representatives_.empty()) {
    for (unsigned byte = 0; byte < 256; ++byte)
      class_of_[byte] = static_cast<std::uint8_t>(byte == '.'                ? 12
                                                  : byte < '0' || byte > '9' ? (byte > '9' ? 11 : 0)
                                                                             : byte - '0' + 1);
  }
  for (; n_classed_sets_ < sets_.size(); ++n_classed_sets_) {
    std::array<std::array<std::int16_t, 2>, 256> renamed;
    renamed.fill({-1, -1});
    std::int16_t n = 0;
    for (unsigned byte = 0; byte < 256; ++byte) {
      std::int16_t& name =
          renamed[class_of_[byte]][sets_[n_classed_sets_].has(static_cast<std::uint8_t>(byte)) ? 1 : 0];
      if (name < 0) name = n++;
      class_of_[byte] = static_cast<std::uint8_t>(name);
    }
  }
  const unsigned n = 1u + *std::ranges::max_element(class_of_);
  representatives_.assign(n, 0);
  for (unsigned byte = 256; byte-- > 0;) representatives_[class_of_[byte]] = static_cast<std::uint8_t>(byte);
}

std::size_t RegexArena::n_classes() {
  find_classes();
  return representatives_.size();
}

const std::array<std::uint8_t, 256>& RegexArena::class_of() {
  find_classes();
  return class_of_;
}

const std::vector<std::uint8_t>& RegexArena::representatives() {
  find_classes();
  return representatives_;
}

}  // namespace zinc_rt::grammar
