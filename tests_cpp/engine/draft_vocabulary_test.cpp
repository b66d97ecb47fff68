// Which tokens the rows of a draft model's output matrix stand for.
#include "engine/draft_vocabulary.h"

#include <gmock/gmock.h>

namespace zinc_rt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The ids must outlive the result.
Weights weights_with(const std::vector<std::int64_t>& ids, DType dtype = DType::kI64) {
  Weights::Source source;
  source.path = "draft.gguf";
  const std::span data(ids);
  const std::uint64_t n = dtype == DType::kI64 ? data.size() : 2 * data.size();
  source.infos.push_back({.name = "d2t", .dtype = dtype, .n_dims = 1, .dims = {n, 1, 1, 1}});
  source.data.push_back(std::as_bytes(data));
  return Weights(std::move(source));
}

std::string error_of(const std::vector<std::int64_t>& ids, DType dtype = DType::kI64) {
  const auto tokens = draft_vocabulary(weights_with(ids, dtype), 10);
  EXPECT_FALSE(tokens);
  return tokens ? std::string() : tokens.error().message;
}

TEST(DraftVocabulary, HasTheTokensOfTheTensor) {
  const std::vector<std::int64_t> ids = {0, 3, 9, 4};
  EXPECT_THAT(*draft_vocabulary(weights_with(ids), 10), ElementsAre(0, 3, 9, 4));
}

TEST(DraftVocabulary, IsThatOfTheModelWithoutTheTensor) {
  Weights::Source source;
  source.path = "draft.gguf";
  EXPECT_TRUE(draft_vocabulary(Weights(std::move(source)), 10)->empty());
}

TEST(DraftVocabulary, WrongTablesAreRefusedWithTheRow) {
  EXPECT_THAT(error_of({1, 10}), HasSubstr("draft.gguf: tensor \"d2t\" has token 10 in row 1, the vocabulary has 10"));
  EXPECT_THAT(error_of({-1}), HasSubstr("has token -1 in row 0"));
  EXPECT_THAT(error_of({1, 2, 1}), HasSubstr("has token 1 twice, the second time in row 2"));
  EXPECT_THAT(error_of({1}, DType::kI32), HasSubstr("has type i32 and 1 rows, i64 and 1 row wanted"));
}

}  // namespace
}  // namespace zinc_rt
