// Which grammars the cache of a model keeps.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "engine/output_grammar.h"

namespace zinc_rt {
namespace {

OutputGrammar some_grammar() {
  static const auto made = grammar::compile({grammar::SourceKind::kRegex, "[a-z]{1,40}", {}}).value();
  return {made};
}
const std::size_t kOne = some_grammar().grammar.n_bytes() + 3;  // with a key of three letters

std::string key(int i) {
  return fmt::format("{:03}", i);
}

int n_found(GrammarCache& cache, std::uint32_t tenant, int n) {
  int found = 0;
  for (int i = 0; i < n; ++i) found += cache.find(tenant, key(i)) ? 1 : 0;
  return found;
}

TEST(GrammarCache, KeepsWhatWasUsedLastOfATenant) {
  GrammarCache cache(4 * kOne, 100 * kOne);
  for (int i = 0; i < 4; ++i) cache.add(1, key(i), some_grammar());
  EXPECT_EQ(n_found(cache, 1, 4), 4);
  EXPECT_TRUE(cache.find(1, key(0)));
  for (int i = 4; i < 7; ++i) cache.add(1, key(i), some_grammar());
  EXPECT_TRUE(cache.find(1, key(0)));
  for (int i = 1; i < 4; ++i) EXPECT_FALSE(cache.find(1, key(i))) << i;
  EXPECT_FALSE(cache.find(2, key(0)));  // another tenant's are not found
}

TEST(GrammarCache, OneOfEachKey) {
  GrammarCache cache(4 * kOne, 100 * kOne);
  for (int i = 0; i < 50; ++i) cache.add(1, key(0), some_grammar());
  cache.add(1, key(1), some_grammar());
  EXPECT_TRUE(cache.find(1, key(0)) && cache.find(1, key(1)));
}

TEST(GrammarCache, AllTenantsTogetherHaveABoundAndWhoHasMostLoses) {
  GrammarCache cache(50 * kOne, 60 * kOne);
  for (int i = 0; i < 5; ++i) cache.add(1, key(i), some_grammar());
  for (std::uint32_t tenant = 2; tenant < 5; ++tenant)
    for (int i = 0; i < 40; ++i) cache.add(tenant, key(i), some_grammar());
  EXPECT_EQ(n_found(cache, 1, 5), 5);
  int all = 5;
  for (std::uint32_t tenant = 2; tenant < 5; ++tenant) {
    const int n = n_found(cache, tenant, 40);
    EXPECT_GE(n, 17);
    all += n;
  }
  EXPECT_EQ(all, 60);
}

TEST(GrammarCache, OneThatIsLargerThanAllIsKeptUntilTheNext) {
  GrammarCache cache(kOne / 2, kOne / 2);
  cache.add(1, key(0), some_grammar());
  EXPECT_TRUE(cache.find(1, key(0)));
  cache.add(1, key(1), some_grammar());
  EXPECT_FALSE(cache.find(1, key(0)));
  EXPECT_TRUE(cache.find(1, key(1)));
}

}  // namespace
}  // namespace zinc_rt
