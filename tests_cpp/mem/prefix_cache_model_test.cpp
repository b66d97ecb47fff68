// The prefix cache under random slots against a naive model: a list of records with whole prefixes, searched from end
// to end, in which every use stamps all ancestors. Matches, evictions, references and checkpoints must agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "mem/prefix_cache.h"

namespace zinc_rt::mem {
namespace {

using Ids = std::vector<std::int32_t>;

bool begins(const Ids& whole, const Ids& with) {
  return whole.size() >= with.size() && std::equal(with.begin(), with.end(), whole.begin());
}

// Prefixes here begin with the scope, so the first page ends behind index 16.
struct Record {
  Ids prefix;
  std::uint64_t used_at = 0;   // it or something below it
  std::uint64_t front_at = 0;  // when it became the first of its siblings
  std::uint32_t pins = 0;
  bool is_full() const { return prefix.size() % 16 == 1; }
  std::size_t parent_size() const { return (prefix.size() - 2) / 16 * 16 + 1; }
};

struct Model {
  std::map<std::uint32_t, Record> records;                                // by page
  std::vector<std::uint32_t> refs;                                        // by page
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint64_t>> held;  // checkpoint -> page, used at
  std::vector<std::uint32_t> lent;
  std::uint64_t clock = 0;

  std::uint32_t find_full(const Ids& prefix) const {
    for (const auto& [page, record] : records)
      if (record.is_full() && record.prefix == prefix) return page;
    return kNone;
  }
  void use(const Ids& prefix, bool brings_ancestors_to_front = false) {
    for (auto& [page, record] : records) {
      if (!record.is_full() || !begins(prefix, record.prefix)) continue;
      record.used_at = clock;
      if (brings_ancestors_to_front) record.front_at = clock;
    }
  }
  void use_one(std::uint32_t page) {
    ++clock;
    use(records[page].prefix);
    records[page].used_at = records[page].front_at = clock;
  }
  // The child of `parent` that shares most with `rest`, the first in order of front_at; and how much.
  std::pair<std::uint32_t, std::uint32_t> best_child(const Ids& parent, const Ids& rest) const {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> children;
    for (const auto& [page, record] : records)
      if (record.parent_size() == parent.size() && begins(record.prefix, parent))
        children.emplace_back(record.front_at, page);
    std::ranges::sort(children, std::greater{});
    if (children.size() > PrefixCache::kPartialLooks) children.resize(PrefixCache::kPartialLooks);
    std::pair<std::uint32_t, std::uint32_t> best{kNone, 0};
    for (const auto& [front_at, page] : children) {
      const Ids& prefix = records.at(page).prefix;
      std::uint32_t n = 0;
      while (n < rest.size() && parent.size() + n < prefix.size() && prefix[parent.size() + n] == rest[n]) ++n;
      if (n > best.second) best = {page, n};
    }
    return best;
  }
  bool is_held_below(std::uint32_t page, bool by_any) const {  // by a pin; by_any: by any record
    for (const auto& [other, record] : records)
      if (other != page && records.at(page).is_full() && begins(record.prefix, records.at(page).prefix) &&
          (by_any || record.pins > 0))
        return true;
    return false;
  }
  void remove(std::uint32_t page) {
    std::erase_if(held, [&](const auto& one) { return one.second.first == page; });
    records.erase(page);
    --refs[page];
  }
  bool evict_one() {
    while (true) {
      std::uint32_t oldest = kNone;
      for (const auto& [page, record] : records)
        if (record.pins == 0 && !is_held_below(page, true) &&
            (oldest == kNone || record.used_at < records[oldest].used_at))
          oldest = page;
      if (oldest == kNone) return false;
      remove(oldest);
      if (refs[oldest] == 0) return true;
    }
  }
  std::uint32_t n_evictable() const {
    return static_cast<std::uint32_t>(std::ranges::count_if(
        records, [&](const auto& one) { return one.second.pins == 0 && !is_held_below(one.first, false); }));
  }
};

// A request: its text so far with the scope before it, and the pages that hold it.
struct Slot {
  Ids text;
  std::vector<std::uint32_t> pages;
  PrefixCache::Node node = kNone;
  bool is_pinned = true;
};

class Simulation {
 public:
  Simulation(std::uint32_t seed, std::uint32_t hash_mask) : rng_(seed), cache_(pool_, {seed, 7}, 4, hash_mask) {
    model_.refs.resize(kPages);
    content_.resize(kPages);
    for (auto& root : roots_) root = cache_.add_scope();
  }

  void step() {
    const auto what = rng_() % 32;
    if (what < 6 && slots_.size() < 6)
      start();
    else if (what < 18 && !slots_.empty())
      append(slots_[rng_() % slots_.size()]);
    else if (what < 23 && !slots_.empty())
      finish(rng_() % slots_.size());
    else if (what < 27)
      match(random_text());
    else if (what < 29)
      checkpoints();
    else if (what == 30)
      evict();
    else if (what == 31 && rng_() % 16 == 0)
      flush();
  }

  void check() {
    ASSERT_EQ(cache_.check(), "");
    ASSERT_EQ(cache_.n_nodes(), model_.records.size());
    ASSERT_EQ(cache_.n_evictable(), model_.n_evictable());
    for (std::uint32_t page = 0; page < kPages; ++page) ASSERT_EQ(pool_.meta(page).ref_count, model_.refs[page]);
  }

  std::uint64_t n_matched = 0, n_partial = 0, n_evicted = 0, n_twins = 0, n_states = 0;

 private:
  static constexpr std::uint32_t kPages = 56;

  // Texts of few kinds of pages, which part early, late, or not at all.
  Ids random_text() {
    Ids text{static_cast<std::int32_t>(rng_() % std::size(roots_))};
    const auto n_tokens = rng_() % 80;
    while (text.size() < n_tokens + 1) push_token(text);
    return text;
  }
  void push_token(Ids& text) {
    const auto at = text.size() % 16;
    const bool may_part = at == 1 || at == 6 || at == 0;
    text.push_back(static_cast<std::int32_t>(at + (may_part && rng_() % 3 == 0 ? 100 * (1 + rng_() % 2) : 0)));
  }
  PrefixCache::Node root_of(const Ids& text) const { return roots_[static_cast<std::size_t>(text[0])]; }

  PrefixCache::Match match(const Ids& text) {
    const auto got = cache_.match(root_of(text), std::span(text).subspan(1));
    Ids prefix{text[0]};
    std::vector<std::uint32_t> pages;
    std::uint32_t state_page = kNone;
    while (text.size() - prefix.size() >= 16) {
      Ids longer(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(prefix.size()) + 16);
      const auto page = model_.find_full(longer);
      if (page == kNone) break;
      prefix = longer;
      pages.push_back(page);
      for (const auto& [id, holder] : model_.held)
        if (holder.first == page) state_page = page;
    }
    ++model_.clock;
    model_.use(prefix, true);
    EXPECT_EQ(got.n_pages, pages.size());
    EXPECT_EQ(cache_.depth(got.node), got.n_pages);
    std::vector<std::uint32_t> path(got.n_pages);
    cache_.path(got.node, path);
    EXPECT_EQ(path, pages);
    for (std::size_t i = 0; i < path.size(); ++i)  // the pages hold what the text says, whatever the model thinks
      EXPECT_TRUE(begins(content_[path[i]], Ids(text.begin(), text.begin() + 17 + 16 * static_cast<long>(i))));

    EXPECT_EQ(got.state_node == kNone ? kNone : cache_.page(got.state_node), state_page);
    for (auto& [id, holder] : model_.held)
      if (holder.first == state_page) holder.second = ++model_.clock, ++n_states;

    const Ids rest(text.begin() + static_cast<std::ptrdiff_t>(prefix.size()), text.end());
    const auto [page, n] = model_.best_child(prefix, rest);
    EXPECT_EQ(got.partial_page, page);
    EXPECT_EQ(got.partial_tokens, n);
    EXPECT_LT(n, 16u);
    if (page != kNone) {
      EXPECT_TRUE(begins(content_[page], Ids(text.begin(), text.begin() + static_cast<long>(prefix.size() + n))));
      model_.use_one(page);
    }
    n_matched += pages.size(), n_partial += n;
    return got;
  }

  bool evict() {
    const bool did = cache_.evict_one();
    EXPECT_EQ(did, model_.evict_one());
    for (std::uint32_t page = 0; page < kPages; ++page) EXPECT_EQ(pool_.meta(page).ref_count, model_.refs[page]);
    n_evicted += did;
    return did;
  }

  std::uint32_t take() {
    if (pool_.n_free() == 0 && !evict()) return kNone;
    const auto page = pool_.take(0, 0);
    ++model_.refs[page];
    content_[page].clear();
    return page;
  }

  void start() {
    const Ids text = random_text();
    const auto found = match(text);
    Slot slot{.text{}, .pages{}, .node = found.node, .is_pinned = rng_() % 8 != 0};
    slot.text.assign(text.begin(), text.begin() + 1 + 16 * static_cast<long>(found.n_pages));
    slot.pages.resize(found.n_pages);
    cache_.path(found.node, slot.pages);
    for (const auto page : slot.pages) {
      EXPECT_TRUE(pool_.add_ref(page));
      ++model_.refs[page];
    }
    if (slot.is_pinned) pin(slot.node);
    slots_.push_back(slot);
  }
  void pin(PrefixCache::Node node) {
    cache_.pin(node);
    if (cache_.page(node) != kNone) ++model_.records[cache_.page(node)].pins;
  }
  void unpin(PrefixCache::Node node) {
    cache_.unpin(node);
    if (cache_.page(node) == kNone) return;
    model_.use_one(cache_.page(node));
    --model_.records[cache_.page(node)].pins;
  }

  void append(Slot& slot) {
    if (!slot.is_pinned) return;  // its node may be gone
    for (auto n = 1 + rng_() % 20; n > 0 && slot.text.size() < 90; --n) {
      if (slot.text.size() % 16 == 1) {
        const auto page = take();
        if (page == kNone) return;
        slot.pages.push_back(page);
      }
      push_token(slot.text);
      content_[slot.pages.back()] = slot.text;
      if (slot.text.size() % 16 == 1 || rng_() % 8 == 0) extend(slot);
    }
  }

  // Publishes the last page of the slot.
  void extend(Slot& slot) {
    const Ids& text = slot.text;
    const auto page = slot.pages.back();
    const Ids parent(text.begin(), text.begin() + static_cast<long>((text.size() - 2) / 16 * 16 + 1));
    const Ids rest(text.begin() + static_cast<long>(parent.size()), text.end());
    const auto got = cache_.extend(slot.node, rest, page);
    const auto twin = rest.size() == 16 ? model_.find_full(text) : kNone;
    const auto own = model_.records.find(page);
    const bool grows = own != model_.records.end() && own->second.prefix.size() < text.size();
    if (twin != kNone) {
      model_.use_one(twin);
      if (grows) model_.remove(page);
      n_twins += twin != page;
      EXPECT_EQ(cache_.page(got), twin);
    } else if (const auto best = model_.best_child(parent, rest); !grows && best.second == rest.size()) {
      model_.use_one(best.first);
      EXPECT_EQ(got, slot.node);
    } else {
      if (own == model_.records.end()) ++model_.refs[page];
      model_.records[page].prefix = text;
      model_.use_one(page);
      EXPECT_EQ(cache_.page(got), rest.size() == 16 ? page : cache_.page(slot.node));
    }
    if (rest.size() < 16) return;
    pin(got);
    unpin(slot.node);
    slot.node = got;
  }

  void finish(std::size_t index) {
    Slot& slot = slots_[index];
    if (slot.is_pinned && slot.text.size() % 16 != 1) extend(slot);
    if (slot.is_pinned) unpin(slot.node);
    for (const auto page : slot.pages) {
      EXPECT_TRUE(pool_.release(page));
      --model_.refs[page];
    }
    slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  void checkpoints() {
    auto& lent = model_.lent;
    if (lent.size() == 2) {
      const auto id = lent.back();
      lent.pop_back();
      const bool any = !model_.records.empty();
      const auto page = any ? std::next(model_.records.begin(), static_cast<long>(rng_() % model_.records.size()))
                            : model_.records.end();
      if (!any || !page->second.is_full() || rng_() % 8 == 0) return cache_.give_back_checkpoint(id);
      cache_.attach_checkpoint(page->first, id);  // a node's id is its page
      const bool has = std::ranges::any_of(model_.held, [&](auto& one) { return one.second.first == page->first; });
      if (!has) model_.held[id] = {page->first, ++model_.clock};
      return;
    }
    const auto id = cache_.lend_checkpoint();
    ASSERT_LT(id, 4u);
    ASSERT_TRUE(std::ranges::find(lent, id) == lent.end());
    const bool all_used = model_.held.size() + lent.size() == 4;
    if (const auto holder = model_.held.find(id); holder != model_.held.end()) {
      EXPECT_TRUE(all_used);
      for (const auto& [other, at] : model_.held) EXPECT_LE(holder->second.second, at.second);
      model_.held.erase(holder);
    } else {
      EXPECT_FALSE(all_used);
    }
    lent.push_back(id);
  }

  void flush() {
    const auto scope = static_cast<std::int32_t>(rng_() % std::size(roots_));
    std::vector<std::uint32_t> gone;
    for (const auto& [page, record] : model_.records)
      if (record.prefix[0] == scope && record.pins == 0 && !model_.is_held_below(page, false)) gone.push_back(page);
    for (const auto page : gone) model_.remove(page);
    EXPECT_EQ(cache_.flush(roots_[static_cast<std::size_t>(scope)]), gone.size());
  }

  std::mt19937 rng_;
  PagePool pool_{kPages};
  PrefixCache cache_;
  PrefixCache::Node roots_[2] = {};
  Model model_;
  std::vector<Slot> slots_;
  std::vector<Ids> content_;  // by page: the text up to its last token
};

void simulate(std::uint32_t seed, std::uint32_t hash_mask, std::uint32_t n_steps) {
  Simulation simulation(seed, hash_mask);
  for (std::uint32_t i = 0; i < n_steps; ++i) {
    simulation.step();
    if (i % 16 == 0) simulation.check();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ", step " << i;
  }
  // What the random texts were made for did happen, often.
  EXPECT_GT(simulation.n_matched, n_steps / 16);
  EXPECT_GT(simulation.n_partial, n_steps / 16);
  EXPECT_GT(simulation.n_evicted, n_steps / 100);
  EXPECT_GT(simulation.n_twins, n_steps / 1000);
  EXPECT_GT(simulation.n_states, n_steps / 1000);
}

TEST(PrefixCacheModel, AgreesOverRandomSlots) {
  for (std::uint32_t seed = 1; seed <= 4; ++seed) simulate(seed, 0xFFFFFFFFu, 40000);
}
TEST(PrefixCacheModel, AgreesWhenAllHashesAreEqual) {
  simulate(5, 0, 40000);
}
TEST(PrefixCacheModel, AgreesWhenHashesAreOfTwoBits) {
  simulate(6, 3, 40000);
}

}  // namespace
}  // namespace zinc_rt::mem
