#include "base/error.h"

#include <gtest/gtest.h>

#include <set>

namespace zinc_rt {
namespace {

TEST(Error, SaysWhatItIsAboutBesideItsMessage) {
  const auto plain = fail(StatusCode::kNotFound, "[a] {} is not there", 5).error();
  EXPECT_EQ(plain.code, StatusCode::kNotFound);
  EXPECT_EQ(plain.message, "[a] 5 is not there");
  EXPECT_EQ(plain.reason, Reason::kNone);
  EXPECT_EQ(plain.field, "");
  const auto full = fail({StatusCode::kInvalidArgument, "prompt", Reason::kContextLength}, "[a] {} wanted", 5).error();
  EXPECT_EQ(full.code, StatusCode::kInvalidArgument);
  EXPECT_EQ(full.message, "[a] 5 wanted");
  EXPECT_EQ(full.reason, Reason::kContextLength);
  EXPECT_EQ(full.field, "prompt");
}

TEST(Error, TheFirstFieldStaysAndOnlyCallersAreAtFault) {
  const auto of = [](StatusCode code, const char* field) { return fail({code, field}, "[a] wrong").error(); };
  EXPECT_EQ(about("n", of(StatusCode::kInvalidArgument, "")).field, "n");
  EXPECT_EQ(about("n", of(StatusCode::kInvalidArgument, "stop")).field, "stop");
  EXPECT_EQ(about("n", of(StatusCode::kUnavailable, "")).field, "");
}

TEST(Error, EachReasonHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const auto reason : {Reason::kNone, Reason::kContextLength, Reason::kGrammarTooComplex, Reason::kBadLogits})
    EXPECT_TRUE(names.insert(to_string(reason)).second) << to_string(reason);
  EXPECT_STREQ(to_string(Reason::kNone), "");
}

TEST(Error, MessagesCanBeReworded) {
  reword_messages([](std::string message) { return "<" + message + ">"; });
  const auto error = fail(StatusCode::kInternal, "[a] {}", "b").error();
  reword_messages(nullptr);
  EXPECT_EQ(error.message, "<[a] b>");
  EXPECT_EQ(fail(StatusCode::kInternal, "[a] b").error().message, "[a] b");
}

}  // namespace
}  // namespace zinc_rt
