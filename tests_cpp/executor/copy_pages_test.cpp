// KV pages copied whole: what is read from the copy has the bits of the original, whatever the cache's type.
#include <gmock/gmock.h>

#include "model_fixture.h"

namespace zinc_rt {
namespace {

using ::testing::HasSubstr;

struct Case {
  std::string model, kv_dtype;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.model << ", cache in " << c.kv_dtype;
}

class CopyPages : public ::testing::TestWithParam<Case> {
 protected:
};

Outcome run_part(Executor& executor, const std::vector<std::int32_t>& ids, std::size_t first, std::size_t n,
                 std::size_t slot, const std::vector<std::uint32_t>& pages) {
  Outcome outcome;
  TestStep input;
  append(input, ids, first, n, slot, pages);
  step(executor, input, outcome);
  return outcome;
}

// Slot 0 reads 40 tokens and forks to slot 1; slot 2 holds the pages around the copies.
TEST_P(CopyPages, ForksATextWithTheSameBits) {
  auto options = small_options();
  options.kv_type = find_kv_type(GetParam().kv_dtype);
  const auto executor = open(GetParam().model, options);
  ASSERT_NE(executor, nullptr);
  const auto ids = prompt(56), other = prompt(56, 7);
  const std::vector<std::uint32_t> mine{0, 5, 2, 11}, copied{9, 20, 7, 13}, around{8, 21, 10, 6};
  run_part(*executor, ids, 0, 40, 0, mine);
  const auto wanted = run_part(*executor, ids, 40, 16, 0, mine);
  run_part(*executor, ids, 0, 40, 0, mine);
  run_part(*executor, other, 0, 40, 2, around);
  const auto wanted_around = run_part(*executor, other, 40, 16, 2, around);
  run_part(*executor, other, 0, 40, 2, around);

  ASSERT_TRUE(executor->copy_pages({{{0, 9}, {5, 20}, {2, 7}}}));
  ASSERT_TRUE(executor->copy_state({{{0, 1}}}));
  EXPECT_EQ(run_part(*executor, ids, 40, 16, 0, mine), wanted);
  run_part(*executor, other, 0, 56, 0, mine);  // the original is gone
  EXPECT_EQ(run_part(*executor, ids, 40, 16, 1, copied), wanted);
  EXPECT_EQ(run_part(*executor, other, 40, 16, 2, around), wanted_around);
}

INSTANTIATE_TEST_SUITE_P(Models, CopyPages,
                         ::testing::Values(Case{"llama_spm-f32", "f16"}, Case{"llama_spm-f32", "f32"},
                                           Case{"llama_k-Q4_K_M", "q8_0"}, Case{"llama_k-Q4_K_M", "k8v4"},
                                           Case{"llama_k-Q4_K_M", "k4v4"}, Case{"llama_k-Q4_K_M", "i16"},
                                           Case{"gemma4_e2b-f16", "f16"}, Case{"qwen35-f32", "f32"},
                                           Case{"tiny_lfm2moe-f16", "f16"}, Case{"tiny_nemotron_h_moe-f16", "f16"}),
                         [](const auto& info) {
                           auto name = info.param.model + "_kv_" + info.param.kv_dtype;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(CopyPagesErrors, NameThePage) {
  const auto executor = open("llama_spm-f32");
  ASSERT_EQ(executor->info().n_pages, 24u);
  const auto error = [&](const std::vector<PageCopy>& copies) {
    const auto before = executor->ring().stats().submissions;
    const auto status = executor->copy_pages(copies);
    if (status) return std::string("done");
    EXPECT_EQ(status.error().code, StatusCode::kInvalidArgument);
    EXPECT_EQ(executor->ring().stats().submissions, before);
    return status.error().message;
  };
  EXPECT_EQ(error({}), "done");
  EXPECT_EQ(error({{0, 1}, {0, 2}, {23, 3}}), "done");
  EXPECT_THAT(error({{0, 24}}), HasSubstr("page 24 of 24"));
  EXPECT_THAT(error({{UINT32_MAX, 0}}), HasSubstr("page 4294967295 of 24"));
  EXPECT_THAT(error({{0, 1}, {1, 2}}), HasSubstr("page 1 is written and named again"));
  EXPECT_THAT(error({{0, 1}, {2, 1}}), HasSubstr("page 1 is written and named again"));
  EXPECT_THAT(error({{1, 1}}), HasSubstr("page 1 is written and named again"));
  EXPECT_THAT(error(std::vector<PageCopy>(129)), HasSubstr("129 copies of a page at once, 128 allowed"));
}

}  // namespace
}  // namespace zinc_rt
