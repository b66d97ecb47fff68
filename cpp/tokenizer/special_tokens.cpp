#include "tokenizer/special_tokens.h"

#include <algorithm>
#include <map>

namespace zinc_rt {
namespace {

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

std::size_t first_two(std::string_view text) {
  return static_cast<std::size_t>(static_cast<std::uint8_t>(text[0])) << 8 | static_cast<std::uint8_t>(text[1]);
}

struct Taken {
  std::size_t end = 0;
  TokenId id = -1;
};

}  // namespace

void SpecialTokens::fill(std::vector<Entry> entries) {
  std::erase_if(entries, [](const Entry& entry) { return entry.text.empty(); });
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.text < b.text; });
  const auto same = [](const Entry& a, const Entry& b) { return a.text == b.text; };
  entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
  entries_ = std::move(entries);
  starts_.reset();
  for (const Entry& entry : entries_) {
    if (entry.text.size() > 1) {
      starts_[first_two(entry.text)] = true;
      continue;
    }
    const std::size_t first = static_cast<std::size_t>(static_cast<std::uint8_t>(entry.text[0])) << 8;
    for (std::size_t second = 0; second < 256; ++second) starts_[first | second] = true;
  }
}

const SpecialTokens::Entry* SpecialTokens::longest_at(std::string_view text, bool parse_special) const {
  if (text.size() > 1 && !starts_[first_two(text)]) return nullptr;
  const Entry* longest = nullptr;
  auto low = entries_.begin();
  auto high = entries_.end();
  // Entries that share the first `depth` bytes of the text lie in [low, high); the one of just that length is the
  // first.
  for (std::size_t depth = 0; depth < text.size(); ++depth) {
    const auto byte = static_cast<std::uint8_t>(text[depth]);
    const auto byte_at = [depth](const Entry& entry) {
      return entry.text.size() == depth ? -1 : static_cast<int>(static_cast<std::uint8_t>(entry.text[depth]));
    };
    low = std::partition_point(low, high, [&](const Entry& entry) { return byte_at(entry) < byte; });
    high = std::partition_point(low, high, [&](const Entry& entry) { return byte_at(entry) == byte; });
    if (low == high) break;
    if (low->text.size() == depth + 1 && (parse_special || !low->on_request)) longest = &*low;
  }
  return longest;
}

std::vector<Fragment> SpecialTokens::split(std::string_view text, bool parse_special) const {
  struct Match {
    std::size_t begin;
    const Entry* entry;
  };
  // By length, the longest first. One match a position: a shorter one is looked for only when the longer one is in the
  // way of another.
  std::map<std::size_t, std::vector<Match>, std::greater<>> matches;
  if (!entries_.empty()) {
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (const Entry* entry = longest_at(text.substr(at), parse_special))
        matches[entry->text.size()].push_back({at, entry});
    }
  }

  std::map<std::size_t, Taken> taken;  // by begin; never overlapping
  while (!matches.empty()) {
    std::vector<Match> group = std::move(matches.begin()->second);
    matches.erase(matches.begin());
    std::sort(group.begin(), group.end(), [](const Match& a, const Match& b) { return a.begin < b.begin; });
    for (const Match& match : group) {
      const auto next = taken.upper_bound(match.begin);
      const std::size_t before = next == taken.begin() ? 0 : std::prev(next)->second.end;
      const std::size_t after = next == taken.end() ? text.size() : next->first;
      if (before > match.begin) continue;
      std::size_t begin = match.begin;
      std::size_t end = begin + match.entry->text.size();
      if (end > after) {
        const Entry* shorter = longest_at(text.substr(begin, after - begin), parse_special);
        if (shorter != nullptr) matches[shorter->text.size()].push_back({begin, shorter});
        continue;
      }
      while (match.entry->strip_left && begin > before && is_space(text[begin - 1])) --begin;
      while (match.entry->strip_right && end < after && is_space(text[end])) ++end;
      taken.emplace(begin, Taken{end, match.entry->id});
    }
  }

  std::vector<Fragment> fragments;
  std::size_t done = 0;
  for (const auto& [begin, token] : taken) {
    if (begin > done) fragments.push_back({text.substr(done, begin - done), -1});
    fragments.push_back({{}, token.id});
    done = token.end;
  }
  if (done < text.size()) fragments.push_back({text.substr(done), -1});
  return fragments;
}

}  // namespace zinc_rt
