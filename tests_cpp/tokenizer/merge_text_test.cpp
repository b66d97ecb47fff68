// Long texts merged window by window give what the plain way gives, and cost the same a byte at any length.
#include "tokenizer/merge_text.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests_cpp/base/random_text.h"

namespace zinc_rt {
namespace {

// A model of random merges over a few letters. A text that is made by one is its own name.
struct Rules {
  std::map<std::string, std::uint32_t> ranks;  // by the joint text: as SPM does, whatever the halves are
  std::map<std::string, std::int32_t> ids;

  std::int32_t id_of(std::string_view text) {
    return ids.try_emplace(std::string(text), static_cast<std::int32_t>(ids.size())).first->second;
  }
};

// The definition: always the pair of the smallest rank, the leftmost of equals.
std::vector<std::uint32_t> plain_way(const Rules& rules, const std::string& text) {
  std::vector<std::string> parts;
  for (const char c : text) parts.emplace_back(1, c);
  while (true) {
    std::size_t best = parts.size();
    std::uint32_t rank = ~0u;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto it = rules.ranks.find(parts[i] + parts[i + 1]);
      if (it != rules.ranks.end() && it->second < rank) rank = it->second, best = i;
    }
    if (best == parts.size()) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  std::vector<std::uint32_t> lengths;
  for (const auto& part : parts) lengths.push_back(static_cast<std::uint32_t>(part.size()));
  return lengths;
}

std::vector<std::uint32_t> by_windows(Rules& rules, const std::string& text, MergeTextScratch& scratch) {
  const auto first = [&](std::string_view all, std::uint32_t at) -> Merged {
    return {at, 1, rules.id_of(all.substr(at, 1))};
  };
  const auto join = [&](const Symbol& left, const Symbol& right, Merge& merge) {
    const std::string both = text.substr(left.begin, left.bytes + right.bytes);
    const auto it = rules.ranks.find(both);
    if (it == rules.ranks.end()) return false;
    merge = {it->second, rules.id_of(both)};
    return true;
  };
  EXPECT_TRUE(merge_text(text, scratch, first, join, [](std::size_t, std::size_t) { return false; }));
  std::vector<std::uint32_t> lengths;
  std::uint32_t at = 0;
  for (const Merged& symbol : scratch.done) {
    EXPECT_EQ(symbol.begin, at);
    EXPECT_EQ(symbol.id, rules.id_of(std::string_view(text).substr(at, symbol.bytes)));
    at += symbol.bytes;
    lengths.push_back(symbol.bytes);
  }
  EXPECT_EQ(at, text.size());
  return lengths;
}

Rules random_rules(RandomText& random, std::uint32_t n_letters, std::uint32_t n_merges, std::uint32_t n_ranks) {
  std::vector<std::string> texts;
  for (std::uint32_t i = 0; i < n_letters; ++i) texts.emplace_back(1, static_cast<char>('a' + i));
  Rules rules;
  const auto any = [&] { return texts[random.below(static_cast<std::uint32_t>(texts.size()))]; };
  for (std::uint32_t i = 0; i < n_merges; ++i) {
    const std::string both = any() + any();
    if (both.size() > 400) continue;
    texts.push_back(both);
    rules.ranks.try_emplace(both, random.below(n_ranks));
  }
  return rules;
}

std::string random_letters(RandomText& random, std::uint32_t n_letters, std::size_t n) {
  std::string text;
  while (text.size() < n) {
    const std::string unit(1 + random.below(3), static_cast<char>('a' + random.below(n_letters)));
    for (std::uint32_t times = random.below(6) == 0 ? random.below(300) : 1; times > 0; --times) text += unit;
  }
  return text;
}

TEST(MergeText, AsThePlainWay) {
  RandomText random(11);
  MergeTextScratch scratch;
  for (int i = 0; i < 300; ++i) {
    // Ranks of all ranges: in the order of making, as BPE has them, and in none, ties among them.
    const std::uint32_t n_letters = 1 + random.below(4);
    auto rules = random_rules(random, n_letters, 2 + random.below(60), random.below(3) == 0 ? 4 : 1000);
    const auto text = random_letters(random, n_letters, 1 + random.below(1500));
    ASSERT_EQ(by_windows(rules, text, scratch), plain_way(rules, text)) << "case " << i << ": " << text;
  }
}

TEST(MergeText, ShiftsThatReachFarToTheRight) {
  // Powers of one letter, merged from the left: where a run starts decides all that follows.
  MergeTextScratch scratch;
  for (const std::size_t longest : {2u, 16u, 128u, 512u}) {
    Rules rules;
    for (std::size_t n = 2; n <= longest; n *= 2)
      rules.ranks.emplace(std::string(n, 'a'), static_cast<std::uint32_t>(rules.ranks.size()));
    rules.ranks.emplace("ba", 1000u);
    for (const std::size_t n : {255u, 256u, 257u, 1023u, 1500u})
      for (const std::string before : {"", "b", "ba"}) {
        const std::string text = before + std::string(n, 'a') + "b" + std::string(n / 2, 'a');
        ASSERT_EQ(by_windows(rules, text, scratch), plain_way(rules, text)) << longest << " " << n << " " << before;
      }
  }
}

TEST(MergeText, WorkGrowsWithTheTextAlone) {
  RandomText random(12);
  auto rules = random_rules(random, 4, 200, 1000);
  const auto joins_per_byte = [&](const std::string& text) {
    MergeTextScratch scratch;
    static_cast<void>(by_windows(rules, text, scratch));
    return static_cast<double>(scratch.merge.n_joins) / static_cast<double>(text.size());
  };
  for (const bool is_run : {true, false}) {
    const auto text = [&](std::size_t n) { return is_run ? std::string(n, 'a') : random_letters(random, 4, n); };
    const double small = joins_per_byte(text(1 << 13)), large = joins_per_byte(text(1 << 18));
    EXPECT_LT(large, 1.5 * small + 0.1) << "run " << is_run;
    EXPECT_LT(large, 12) << "run " << is_run;
  }
}

}  // namespace
}  // namespace zinc_rt
