// The rules of encode and decode on vocabularies small enough to work out by hand.
#include "tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests_cpp/tokenizer/small_vocab.h"
#include "tests_cpp/tokenizer/tokenizer_fixture.h"

namespace zinc_rt {
namespace {

using Ids = std::vector<std::int32_t>;

Tokenizer make(const SmallVocab& vocab, const std::string& model) {
  auto made = Tokenizer::from_metadata(vocab.metadata(model));
  EXPECT_TRUE(made) << made.error().message;
  return *made;
}

std::string error_of(const SmallVocab& vocab, const std::string& model) {
  auto made = Tokenizer::from_metadata(vocab.metadata(model));
  return made ? "no error" : made.error().message;
}

TEST(ByteLevel, MergesByRank) {
  const Tokenizer t = make(SmallVocab::byte_level(), "gpt2");
  EXPECT_EQ(ids_of(t, "hello"), Ids({259}));
  EXPECT_EQ(ids_of(t, "hello hello"), Ids({259, 260}));
  EXPECT_EQ(ids_of(t, "hellohello"), Ids({259, 259}));
  EXPECT_EQ(ids_of(t, "lll"), Ids({257, 'l'}));  // the leftmost of equal pairs
  EXPECT_EQ(ids_of(t, ""), Ids({}));
  EXPECT_EQ(t.token_text(260), "\u0120hello");
  EXPECT_EQ(t.token_bytes(260), " hello");
}

TEST(ByteLevel, BytesThatAreNotUtf8StayThemselves) {
  const Tokenizer t = make(SmallVocab::byte_level(), "gpt2");
  const std::string broken = "hello\xFF\xC3(\xE2\x82 hello\xF0\x9F";
  EXPECT_EQ(ids_of(t, broken), Ids({259, 0xFF, 0xC3, '(', 0xE2, 0x82, 260, 0xF0, 0x9F}));
  EXPECT_EQ(text_of(t, ids_of(t, broken)), broken);
}

TEST(ByteLevel, AByteWithoutATokenIsLeftOut) {
  SmallVocab v = SmallVocab::byte_level();
  v.tokens[7] = "replaced";
  EXPECT_EQ(ids_of(make(v, "gpt2"), "a\x07z"), Ids({'a', 'z'}));
}

TEST(ByteLevel, MergesThatLeadToNoTokenEndInBytes) {
  SmallVocab v = SmallVocab::byte_level();
  v.merges.push_back("x y");  // no token "xy"
  EXPECT_EQ(ids_of(make(v, "gpt2"), "axyb"), Ids({'a', 'x', 'y', 'b'}));
  v.merges.push_back("xy z");
  const int xyz = v.add("xyz");
  EXPECT_EQ(ids_of(make(v, "gpt2"), "xyz"), Ids({xyz}));
}

TEST(ByteLevel, WholeWordsBeforeMergesWhereTheModelSaysSo) {
  SmallVocab v = SmallVocab::byte_level();
  const int word = v.add("zebra");
  EXPECT_EQ(ids_of(make(v, "gpt2"), "zebra").size(), 5u);
  for (auto& [key, value] : v.more) {
    if (key == "tokenizer.ggml.pre") value.data = std::string("llama-bpe");
  }
  EXPECT_EQ(ids_of(make(v, "gpt2"), "zebra"), Ids({word}));
}

TEST(SpecialTokens, BosAndEosByKeys) {
  SmallVocab v = SmallVocab::byte_level();
  EXPECT_EQ(ids_of(make(v, "gpt2"), "h", true), Ids({'h'}));
  v.set("add_bos_token", true);
  v.set("add_eos_token", true);
  const Tokenizer t = make(v, "gpt2");
  EXPECT_EQ(ids_of(t, "h", true), Ids({261, 'h', 262}));
  EXPECT_EQ(ids_of(t, "", true), Ids({261, 262}));
  EXPECT_EQ(ids_of(t, "h", false), Ids({'h'}));
}

TEST(SpecialTokens, ControlOnRequestUserDefinedAlways) {
  SmallVocab v = SmallVocab::byte_level();
  const int tool = v.add("<tool>", 4);
  const Tokenizer t = make(v, "gpt2");
  EXPECT_EQ(ids_of(t, "<s>h<tool>", false, true), Ids({261, 'h', tool}));
  EXPECT_EQ(ids_of(t, "<s>h<tool>", false, false), Ids({'<', 's', '>', 'h', tool}));
  EXPECT_TRUE(t.is_special(261));
  EXPECT_FALSE(t.is_special(tool));
  EXPECT_EQ(text_of(t, {261, 'h', tool}), "<s>h<tool>");
  EXPECT_EQ(text_of(t, {261, 'h', tool}, true), "h<tool>");
}

TEST(SpecialTokens, TheLongestGoesFirst) {
  SmallVocab v = SmallVocab::byte_level();
  const int ab = v.add("<<a", 4);
  const int abc = v.add("<<a>>", 4);
  const int tail = v.add("a>>b!!", 4);
  const Tokenizer t = make(v, "gpt2");
  EXPECT_EQ(ids_of(t, "<<a<<a>>"), Ids({ab, abc}));
  // The longer one that starts later still wins, and the text before it is looked at again.
  EXPECT_EQ(ids_of(t, "<<a>>b!!"), Ids({'<', '<', tail}));
}

TEST(SpecialTokens, LongRunsAreLinear) {
  SmallVocab v = SmallVocab::byte_level();
  const int first = v.add("\n\n", 4);
  for (int n = 3; n <= 31; ++n) v.add(std::string(static_cast<std::size_t>(n), '\n'), 4);
  const Tokenizer t = make(v, "gpt2");
  const Ids ids = ids_of(t, std::string(310'002, '\n'));
  ASSERT_EQ(ids.size(), 10'001u);
  EXPECT_EQ(ids.front(), first + 29);
  EXPECT_EQ(ids.back(), first);
}

TEST(SpecialTokens, EndOfGeneration) {
  SmallVocab v = SmallVocab::byte_level();
  const int end = v.add("<|im_end|>", 4);
  const int text = v.add("<|endoftext|>", 1);
  const Tokenizer t = make(v, "gpt2");
  EXPECT_TRUE(t.is_end_of_generation(262));
  EXPECT_TRUE(t.is_end_of_generation(end));
  EXPECT_TRUE(t.is_end_of_generation(text));
  EXPECT_FALSE(t.is_end_of_generation(261));
  EXPECT_FALSE(t.is_end_of_generation(-1));
  EXPECT_EQ(t.eot_id(), end);
  EXPECT_TRUE(t.is_special(end)) << "text from outside must not end a turn";
  EXPECT_EQ(t.end_of_generation_ids(), Ids({262, end, text}));
}

TEST(Spm, MergesByScoreWithByteFallback) {
  const Tokenizer t = make(SmallVocab::spm(), "llama");
  const int hello = *t.find("\u2581hello");
  EXPECT_EQ(ids_of(t, "hello", true), Ids({1, hello}));
  EXPECT_EQ(ids_of(t, " hello"), Ids({*t.find("\u2581"), hello}));
  EXPECT_EQ(ids_of(t, "hello world"), Ids({hello, *t.find("\u2581wor"), *t.find("l"), *t.find("d")}));
  EXPECT_EQ(ids_of(t, "\n\u00e9"), Ids({*t.find("\u2581"), 3 + 10, *t.find("\u00e9")}));
  EXPECT_EQ(ids_of(t, "\xF0\x9F\x99\x82\xFF").size(), 6u);
  EXPECT_EQ(text_of(t, ids_of(t, "\xF0\x9F\x99\x82\xFF")), "\xF0\x9F\x99\x82\xFF");
  EXPECT_EQ(ids_of(t, ""), Ids({}));
}

TEST(Spm, UnknownWhereThereAreNoByteTokens) {
  SmallVocab v;
  v.add("<unk>", 2);
  v.add("\u2581", 1, -1);
  v.add("a", 1, -2);
  EXPECT_EQ(ids_of(make(v, "llama"), "a\u00e9a"), Ids({1, 2, 0, 2}));
}

TEST(Spm, TheSpaceBeforeTextGoesAwayAgain) {
  SmallVocab v = SmallVocab::spm();
  const Tokenizer t = make(v, "llama");
  for (const char* text : {"hello", " hello", "  hello world", "", " ", "\nhello"})
    EXPECT_EQ(text_of(t, ids_of(t, text)), text);
  EXPECT_EQ(text_of(t, ids_of(t, "hello<s> hello</s>hello", true, true), true), "hello hellohello");
  v.set("add_space_prefix", false);
  const Tokenizer bare = make(v, "llama");
  EXPECT_EQ(ids_of(bare, "hello"), Ids({*bare.find("hello")}));
  EXPECT_EQ(text_of(bare, ids_of(bare, " hello")), " hello");
}

TEST(Spm, RemovesExtraSpacesOnlyWhenAsked) {
  SmallVocab v = SmallVocab::spm();
  v.set("remove_extra_whitespaces", true);
  const Tokenizer t = make(v, "llama");
  EXPECT_EQ(ids_of(t, "  hello   hello "), ids_of(t, "hello hello"));
}

TEST(Gemma4, CharactersLineFeedsAndBytes) {
  SmallVocab v = SmallVocab::spm();
  v.merges = {"h e", "l l", "he ll", "hell o", "\u2581 hello", "\n \n"};
  const int feeds = v.add("\n\n");
  v.set("bos_token_id", std::int64_t{1});
  v.set("add_bos_token", false);
  const Tokenizer t = make(v, "gemma4");
  EXPECT_EQ(ids_of(t, "hello hello\n\n\n", true), Ids({1, *t.find("hello"), *t.find("\u2581hello"), feeds, 3 + 10}));
  EXPECT_EQ(ids_of(t, "\n\n"), Ids({feeds}));
  EXPECT_EQ(text_of(t, ids_of(t, " hello\t\u00fc\n")), " hello\t\u00fc\n");
}

TEST(HostileVocabularies, AreRefusedWithBothNumbers) {
  using testing::HasSubstr;
  SmallVocab v = SmallVocab::byte_level();
  EXPECT_THAT(error_of(v, "t5"), HasSubstr("\"t5\" is not supported; known: gpt2, llama, gemma4"));
  v.types.pop_back();
  EXPECT_THAT(error_of(v, "gpt2"), HasSubstr("token_type: 263 entries wanted (one a token), 262 there"));
  v = SmallVocab::byte_level();
  v.scores.push_back(1);
  EXPECT_THAT(error_of(v, "gpt2"), HasSubstr("scores: 263 entries wanted (one a token), 264 there"));
  v = SmallVocab::byte_level();
  v.types[5] = 9;
  EXPECT_THAT(error_of(v, "gpt2"), HasSubstr("token_type[5]: a type from 0 to 6 wanted, 9 there"));
  v = SmallVocab::byte_level();
  v.merges[1] = "nospace";
  EXPECT_THAT(error_of(v, "gpt2"), HasSubstr("merges[1]: two texts with a space between wanted, \"nospace\" there"));
  v = SmallVocab::byte_level();
  v.merges.clear();
  EXPECT_THAT(error_of(v, "gpt2"), HasSubstr("merges"));
  v = SmallVocab::byte_level();
  v.set("eot_token_id", std::int64_t{263});
  EXPECT_THAT(error_of(v, "gpt2"), HasSubstr("eot_token_id: an id below 263 wanted, 263 there"));
  v = SmallVocab::byte_level();
  v.more.back().second.data = std::string("made-up");
  EXPECT_THAT(error_of(v, "gpt2"), HasSubstr("pre \"made-up\" is not supported; known: default, gpt-2"));
  v = SmallVocab::spm();
  v.scores.clear();
  EXPECT_THAT(error_of(v, "llama"), HasSubstr("scores: 277 wanted (one a token), 0 there"));
  EXPECT_THAT(error_of(SmallVocab{}, "gpt2"), HasSubstr("at least 1 token wanted, 0 there"));
  v = SmallVocab::byte_level();
  v.more.erase(v.more.begin());
  v.set("add_bos_token", true);
  EXPECT_THAT(error_of(v, "gpt2"), HasSubstr("bos_token_id is absent"));
}

TEST(HostileVocabularies, DuplicatesKeepTheFirst) {
  SmallVocab v = SmallVocab::byte_level();
  v.add("hello");
  v.add("");
  v.merges.push_back("h e");
  const Tokenizer t = make(v, "gpt2");
  EXPECT_EQ(t.find("hello"), 259);
  EXPECT_EQ(ids_of(t, "hello"), Ids({259}));
}

TEST(Tokenizer, IdsOutsideAreRefusedOrEmpty) {
  const Tokenizer t = make(SmallVocab::byte_level(), "gpt2");
  const Ids ids = {'a', 263};
  const auto decoded = t.decode(ids);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().message, "[tokenizer] ids[1]: an id below 263 wanted, 263 there");
  EXPECT_FALSE(t.decode(Ids({-1})));
  EXPECT_EQ(t.token_text(-1), "");
  EXPECT_EQ(t.token_bytes(263), "");
  EXPECT_FALSE(t.is_special(263));
}

TEST(Tokenizer, ThreadsShareIt) {
  const Tokenizer t = make(SmallVocab::byte_level(), "gpt2");
  const std::string text = "hello hello 123 \u00e9\u4e2d\n hello";
  const Ids want = ids_of(t, text);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 200; ++k) wrong[i] += t.encode(text, false, false) != want;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

}  // namespace
}  // namespace zinc_rt
