#include "base/utf8.h"

#include <gtest/gtest.h>

#include "tests_cpp/base/random_text.h"

namespace zinc_rt {
namespace {

TEST(Utf8, KnowsWellFormedSequences) {
  for (const char32_t c : {U'\0', U'a', U'\u007F', U'\u0080', U'\u07FF', U'\u0800', U'\uD7FF', U'\uE000', U'\uFFFF',
                           U'\U00010000', U'\U0010FFFF'}) {
    std::string text;
    append_utf8(text, c);
    EXPECT_EQ(utf8_sequence_bytes(text), text.size());
    EXPECT_EQ(utf8_code_point(text), c);
    EXPECT_EQ(replace_invalid_utf8(text), text);
    for (std::size_t n = 0; n < text.size(); ++n) EXPECT_EQ(utf8_sequence_bytes(text.substr(0, n)), 0u);
  }
}

TEST(Utf8, ReplacesEachMaximalBrokenPart) {
  const std::pair<std::string, std::string> cases[] = {
      {"\x80", "\uFFFD"},
      {"\xC0\xAF", "\uFFFD\uFFFD"},                      // overlong
      {"\xE0\x80\xAF", "\uFFFD\uFFFD\uFFFD"},            // overlong
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},            // surrogate
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // above U+10FFFF
      {"\xF0\x9F\x99"
       "a",
       "\uFFFD"
       "a"},  // cut short
      {"\xE2\x82\xE2\x82\xAC", "\uFFFD\u20AC"},
      {"ab\xF1\x80", "ab\uFFFD"},
  };
  for (const auto& [text, want] : cases) EXPECT_EQ(replace_invalid_utf8(text), want);
}

TEST(Utf8, RepairInPartsIsRepairOfTheWhole) {
  RandomText random(7);
  for (int i = 0; i < 300; ++i) {
    const std::string text = random.bytes(12);
    const std::string want = replace_invalid_utf8(text);
    EXPECT_TRUE(is_utf8(want));
    for (std::size_t step = 1; step <= 5; ++step) {
      Utf8Repair repair;
      std::string got;
      for (std::size_t at = 0; at < text.size(); at += step) {
        repair.push(std::string_view(text).substr(at, step), got);
        EXPECT_TRUE(is_utf8(got));
      }
      repair.finish(got);
      EXPECT_EQ(got, want);
    }
  }
}

}  // namespace
}  // namespace zinc_rt
