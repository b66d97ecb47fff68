#include "tokenizer/special_tokens.h"

#include <algorithm>
#include <map>

namespace zinc_rt {
namespace {

std::size_t first_two(std::string_view text) {
  return static_cast<std::size_t>(static_cast<std::uint8_t>(text[0])) << 8 | static_cast<std::uint8_t>(text[1]);
}

// Returns how many bytes from text[at] on did not come from a client. Returns SIZE_MAX if no later byte did.
std::size_t own_bytes(const OutsideText& outside, std::size_t at) {
  if (outside.spans.empty()) return SIZE_MAX;
  const auto next = std::ranges::partition_point(outside.spans, [at](const TextSpan& s) { return s.end <= at; });
  if (next == outside.spans.end()) return SIZE_MAX;
  return next->begin > at ? next->begin - at : 0;
}

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

const SpecialTokens::Entry* SpecialTokens::longest_at(std::string_view text, std::size_t at, const Rule& rule) const {
  text.remove_prefix(at);
  if (text.size() > 1 && !starts_[first_two(text)]) return nullptr;
  const std::size_t n_own = rule.parse_special ? own_bytes(rule.outside, at) : 0;
  const auto counts = [&](const Entry& entry) {
    return !entry.on_request || entry.text.size() <= n_own ||
           (rule.parse_special && std::ranges::binary_search(rule.outside.allowed, entry.id));
  };
  const Entry* longest = nullptr;
  auto low = entries_.begin();
  auto high = entries_.end();
  // [low, high) are the entries whose first `depth` bytes equal the first `depth` bytes of the text. If one of these
  // entries is exactly `depth` bytes long, it is the first of them.
  for (std::size_t depth = 0; depth < text.size(); ++depth) {
    const auto byte = static_cast<std::uint8_t>(text[depth]);
    const auto byte_at = [depth](const Entry& entry) {
      return entry.text.size() == depth ? -1 : static_cast<int>(static_cast<std::uint8_t>(entry.text[depth]));
    };
    low = std::partition_point(low, high, [&](const Entry& entry) { return byte_at(entry) < byte; });
    high = std::partition_point(low, high, [&](const Entry& entry) { return byte_at(entry) == byte; });
    if (low == high) break;
    if (low->text.size() == depth + 1 && counts(*low)) longest = &*low;
  }
  return longest;
}

// Chooses which of several overlapping matches count. `reach` is the end of the last match, including white space that
// it may remove.
std::vector<SpecialTokens::Taken> SpecialTokens::choose(std::string_view text, const Rule& rule,
                                                        const std::vector<Match>& group, std::size_t reach) const {
  const std::size_t base = group.front().begin;
  std::vector<bool> covered(reach - base);
  // Holds the matches that are not decided yet, by length, the longest first. There is one match per position. A
  // shorter match at the same position is searched for only if the longer one overlaps another match.
  std::map<std::size_t, std::vector<Match>, std::greater<>> waiting;
  for (const Match& match : group) waiting[entries_[match.entry].text.size()].push_back(match);
  std::vector<Taken> taken;
  while (!waiting.empty()) {
    std::vector<Match> equals = std::move(waiting.begin()->second);
    waiting.erase(waiting.begin());
    std::sort(equals.begin(), equals.end(), [](const Match& a, const Match& b) { return a.begin < b.begin; });
    for (const Match& match : equals) {
      if (covered[match.begin - base]) continue;
      const Entry& entry = entries_[match.entry];
      std::size_t end = match.begin + 1;
      while (end < match.begin + entry.text.size() && !covered[end - base]) ++end;
      if (end < match.begin + entry.text.size()) {
        const Entry* shorter = longest_at(text.substr(0, end), match.begin, rule);
        if (shorter != nullptr) waiting[shorter->text.size()].push_back({match.begin, number_of(shorter)});
        continue;
      }
      while (entry.strip_right && end < reach && !covered[end - base] && is_space(text[end])) ++end;
      std::fill(covered.begin() + static_cast<std::ptrdiff_t>(match.begin - base),
                covered.begin() + static_cast<std::ptrdiff_t>(end - base), true);
      taken.push_back({match.begin, static_cast<std::uint32_t>(end), entry.id});
    }
  }
  std::sort(taken.begin(), taken.end(), [](const Taken& a, const Taken& b) { return a.begin < b.begin; });
  return taken;
}

bool SpecialTokens::split(std::string_view text, const Rule& rule, const Sink& sink) const {
  std::size_t done = 0;
  const auto give = [&](const Taken& token) {
    if (token.begin > done && !sink({text.substr(done, token.begin - done), -1})) return false;
    done = token.end;
    return sink({{}, token.id});
  };
  std::vector<Match> group;
  std::size_t reach = 0;
  const auto give_group = [&] {
    if (group.empty()) return true;
    if (group.size() == 1) {
      const Match only = group[0];
      group.clear();
      return give({only.begin, static_cast<std::uint32_t>(reach), entries_[only.entry].id});
    }
    const auto taken = choose(text, rule, group, reach);
    group.clear();
    return std::all_of(taken.begin(), taken.end(), give);
  };
  std::size_t spaces_end = 0;  // end of the last run of white space that was scanned, so that no run is scanned twice
  const auto end_of_spaces = [&](std::size_t at) {
    if (at >= spaces_end)
      for (spaces_end = at; spaces_end < text.size() && is_space(text[spaces_end]);) ++spaces_end;
    return is_space(text[at]) ? spaces_end : at;
  };
  for (std::size_t at = 0; at < text.size() && !entries_.empty(); ++at) {
    const Entry* entry = longest_at(text, at, rule);
    if (entry == nullptr) continue;
    if (at >= reach && !give_group()) return false;
    group.push_back({static_cast<std::uint32_t>(at), number_of(entry)});
    std::size_t end = at + entry->text.size();
    if (entry->strip_right && end < text.size()) end = end_of_spaces(end);
    reach = std::max(reach, end);
  }
  if (!give_group()) return false;
  return done == text.size() || sink({text.substr(done), -1});
}

}  // namespace zinc_rt
