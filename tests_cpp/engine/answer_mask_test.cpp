// Masks of an answer, made here and on other threads.
#include "engine/answer_mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

namespace zinc_rt {
namespace {

using grammar::SourceKind;
using ::testing::HasSubstr;

// The ids are the bytes, and 256 is the end.
std::shared_ptr<const grammar::Vocabulary> byte_tokens() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  tokens.emplace_back();
  return grammar::Vocabulary::make(tokens, {256}).value();
}

OutputGrammar choice(std::vector<std::string> texts) {
  return {grammar::compile({SourceKind::kChoice, "", std::move(texts)}).value()};
}

std::vector<std::int32_t> allowed(AnswerMask& mask, std::size_t n_guessed = 0) {
  const auto words = mask.get(n_guessed);
  std::vector<std::int32_t> ids;
  if (!words) ADD_FAILURE() << words.error().message;
  for (std::size_t id = 0; words && id < words->size() * 32; ++id)
    if (((*words)[id / 32] >> id % 32 & 1) != 0) ids.push_back(static_cast<std::int32_t>(id));
  return ids;
}

TEST(AnswerMask, FollowsTheTokensThatWerePicked) {
  AnswerMask mask(choice({"ab", "ac", "b"}), byte_tokens());
  EXPECT_TRUE(mask.is_stale() && !mask.is_making());
  EXPECT_EQ(allowed(mask), (std::vector<std::int32_t>{'a', 'b'}));
  AnswerMask other(mask);  // of another choice
  mask.take('a');
  EXPECT_TRUE(mask.is_stale() && !mask.is_making());
  EXPECT_EQ(allowed(mask), (std::vector<std::int32_t>{'b', 'c'}));
  mask.take('c');
  EXPECT_EQ(allowed(mask), (std::vector<std::int32_t>{256}));
  EXPECT_EQ(allowed(other), (std::vector<std::int32_t>{'a', 'b'}));
  other.take('b');
  EXPECT_EQ(allowed(other), (std::vector<std::int32_t>{256}));
}

// The masks after guessed tokens are those of an answer that has these tokens, and the answer's own mask stays.
TEST(AnswerMask, AGuessEndsBeforeATokenThatIsNotAllowed) {
  AnswerMask mask(choice({"abcd", "abx", "b"}), byte_tokens());
  mask.take('a');
  const std::vector<std::int32_t> proposed = {'b', 'c', 'x', 'd'};
  EXPECT_TRUE(std::ranges::equal(mask.guess(proposed), std::vector<std::int32_t>{'b', 'c'}));
  EXPECT_EQ(allowed(mask), (std::vector<std::int32_t>{'b'}));
  EXPECT_EQ(allowed(mask, 1), (std::vector<std::int32_t>{'c', 'x'}));
  EXPECT_EQ(allowed(mask, 2), (std::vector<std::int32_t>{'d'}));
  EXPECT_FALSE(mask.get(3));
  mask.take('b');
  EXPECT_EQ(allowed(mask), (std::vector<std::int32_t>{'c', 'x'}));
  EXPECT_FALSE(mask.get(1));
  EXPECT_TRUE(mask.guess(std::vector<std::int32_t>{'a'}).empty());
  EXPECT_EQ(allowed(mask), (std::vector<std::int32_t>{'c', 'x'}));
  mask.take('x');
  EXPECT_TRUE(std::ranges::equal(mask.guess(std::vector<std::int32_t>{256, 'a'}), std::vector<std::int32_t>{256}));
}

TEST(AnswerMask, AForcedTextIsAGuess) {
  AnswerMask mask(choice({"abcd", "abcx"}), byte_tokens());
  EXPECT_TRUE(std::ranges::equal(mask.guess_forced(2), std::vector<std::int32_t>{'a', 'b'}));
  EXPECT_TRUE(std::ranges::equal(mask.guess_forced(9), std::vector<std::int32_t>{'a', 'b', 'c'}));
  EXPECT_EQ(allowed(mask, 3), (std::vector<std::int32_t>{'d', 'x'}));
  mask.take('z');
  EXPECT_TRUE(mask.guess_forced(9).empty());
  EXPECT_TRUE(mask.guess(std::vector<std::int32_t>{'b'}).empty());
  EXPECT_FALSE(mask.get());
}

TEST(AnswerMask, ATokenThatWasNotAllowedIsAnErrorThatStays) {
  AnswerMask mask(choice({"ab"}), byte_tokens());
  mask.take('x');
  for (int i = 0; i < 2; ++i) {
    const auto words = mask.get();
    ASSERT_FALSE(words);
    EXPECT_THAT(words.error().message, HasSubstr("token 120 was picked and is not allowed"));
    mask.take('a');
  }
}

TEST(AnswerMask, WaitsForTheThreadThatMakesIt) {
  std::promise<void> made;
  MaskMaker maker([&] { made.set_value(); });
  const auto mask = std::make_shared<AnswerMask>(choice({"ab", "ac"}), byte_tokens());
  mask->take('a');
  mask->begin();
  EXPECT_TRUE(mask->is_making());
  maker.post("tenant", mask);
  EXPECT_EQ(allowed(*mask), (std::vector<std::int32_t>{'b', 'c'}));
  made.get_future().wait();
  EXPECT_FALSE(mask->is_making() || mask->is_stale());
}

TEST(MaskMaker, MakesNoneBehindItsEnd) {
  MaskMaker maker([] { ADD_FAILURE() << "a mask was made"; });
  maker.stop();
  AnswerMask mask(choice({"ab"}), byte_tokens());
  EXPECT_EQ(maker.make("tenant", mask, {}).error().code, StatusCode::kUnavailable);
  std::stop_source gone;
  gone.request_stop();
  MaskMaker other([] {});
  const auto made = other.make("tenant", mask, gone.get_token());
  EXPECT_TRUE(made || made.error().code == StatusCode::kCancelled);  // whether a thread was quicker
}

TEST(MaskPace, OneThatTookLongMakesTheNextCountAsSlow) {
  using std::chrono::microseconds;
  MaskPace pace;
  EXPECT_TRUE(pace.is_quick());
  pace.note(microseconds(300));
  EXPECT_TRUE(pace.is_quick());
  pace.note(microseconds(301));
  for (int i = 0; i < 64; ++i) {
    EXPECT_FALSE(pace.is_quick()) << i;
    pace.note(microseconds(10));
  }
  EXPECT_TRUE(pace.is_quick());
}

}  // namespace
}  // namespace zinc_rt
