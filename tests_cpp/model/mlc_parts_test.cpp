// MD5, repacking of groups, quantizing, and merges against scores.
#include <gmock/gmock.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "kernels/common/half.h"
#include "model/mlc/chat_config.h"
#include "model/mlc/md5.h"
#include "model/mlc/params.h"
#include "model/mlc/pre_names.h"
#include "model/mlc/repack.h"
#include "model/mlc/spm_merges.h"

namespace zinc_rt::mlc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string md5_of(std::string_view text) {
  return md5_hex(std::as_bytes(std::span(text.data(), text.size())));
}

// The test suite of RFC 1321, and lengths around a block's end (their sums by another implementation).
TEST(Md5, KnownSums) {
  EXPECT_EQ(md5_of(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_of("a"), "0cc175b9c0f1b6a831c399e269772661");
  EXPECT_EQ(md5_of("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(md5_of("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(md5_of("abcdefghijklmnopqrstuvwxyz"), "c3fcd3d76192e4007dfb496cca67e13b");
  EXPECT_EQ(md5_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"),
            "d174ab98d277d9f5a5611c2c9f419d9f");
  EXPECT_EQ(md5_of("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
            "57edf4a22be3c955ac49da2e2107b67a");
  EXPECT_EQ(md5_of(std::string(55, 'x')), "04364420e25c512fd958a70738aa8f72");
  EXPECT_EQ(md5_of(std::string(56, 'x')), "668a72d5ba17f08e62dabcafad6db14b");
  EXPECT_EQ(md5_of(std::string(64, 'x')), "c1bb4f81d892b2d57947682aeb252456");
  EXPECT_EQ(md5_of(std::string(1000000, 'x')), "ec78dbd963d2fc01e51176ed4dec299e");
}

float q4f16_value(const std::byte* words, const std::byte* scales, std::size_t k) {
  std::uint32_t word = 0;
  std::memcpy(&word, words + k / 32 * 16 + k % 32 / 8 * 4, 4);
  std::uint16_t scale = 0;
  std::memcpy(&scale, scales + k / 32 * 2, 2);
  return (static_cast<float>(word >> 4 * (k % 8) & 15) - 7) * f16_to_f32(scale);
}

float q4_0_value(const std::byte* blocks, std::size_t k) {
  const std::byte* block = blocks + k / 32 * 18;
  std::uint16_t d = 0;
  std::memcpy(&d, block, 2);
  const auto byte = std::to_integer<unsigned>(block[2 + k % 16]);
  return (static_cast<float>(k % 32 < 16 ? byte & 15 : byte >> 4) - 8) * f16_to_f32(d);
}

// All 65536 scales, with every nibble at every place: the values are the same numbers, and the way back gives the
// bytes.
TEST(Repack, EveryGroupKeepsItsValues) {
  std::mt19937 random(1);
  for (unsigned scale = 0; scale < 65536; ++scale) {
    std::array<std::byte, 16> words;
    for (std::byte& byte : words) byte = static_cast<std::byte>(random());
    if (scale < 16) words.fill(static_cast<std::byte>(scale * 17));
    const auto half = static_cast<std::uint16_t>(scale);
    std::array<std::byte, 2> scales;
    std::memcpy(scales.data(), &half, 2);
    std::array<std::byte, 18> block;
    q4f16_to_q4_0(words.data(), scales.data(), 1, block.data());
    for (std::size_t k = 0; k < 32; ++k) {
      const float wanted = q4f16_value(words.data(), scales.data(), k), got = q4_0_value(block.data(), k);
      ASSERT_TRUE(wanted == got || (std::isnan(wanted) && std::isnan(got))) << scale << " " << k;
    }
    std::array<std::byte, 16> words_back;
    std::array<std::byte, 2> scales_back;
    q4_0_to_q4f16(block.data(), 1, words_back.data(), scales_back.data());
    ASSERT_EQ(words_back, words);
    ASSERT_EQ(scales_back, scales);
  }
}

TEST(Quantize, TheErrorIsAtMostHalfAStep) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (int trial = 0; trial < 500; ++trial) {
    std::array<float, 64> x;
    for (float& value : x) value = normal(random) * std::ldexp(1.0f, trial % 12 - 8);
    std::array<std::byte, 32> words;
    std::array<std::byte, 4> scales;
    ASSERT_TRUE(quantize_q4f16(x, words.data(), scales.data()));
    for (std::size_t k = 0; k < x.size(); ++k) {
      std::uint16_t half = 0;
      std::memcpy(&half, scales.data() + k / 32 * 2, 2);
      // The largest value may lie beyond 7 steps by what f16 took from the scale.
      const float step = f16_to_f32(half);
      EXPECT_LE(std::fabs(q4f16_value(words.data(), scales.data(), k) - x[k]), step * 0.505f);
    }
  }
}

TEST(Quantize, ValuesOnTheGridStay) {
  std::array<float, 32> x;
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = (static_cast<float>(k % 15) - 7) * 0.125f;
  std::array<std::byte, 16> words;
  std::array<std::byte, 2> scales;
  ASSERT_TRUE(quantize_q4f16(x, words.data(), scales.data()));
  for (std::size_t k = 0; k < x.size(); ++k) EXPECT_EQ(q4f16_value(words.data(), scales.data(), k), x[k]);
}

TEST(Quantize, ZerosAndWhatIsNoNumber) {
  std::array<float, 32> x{};
  std::array<std::byte, 16> words;
  std::array<std::byte, 2> scales;
  EXPECT_TRUE(quantize_q4f16(x, words.data(), scales.data()));
  EXPECT_EQ(q4f16_value(words.data(), scales.data(), 5), 0);
  for (const float bad : {INFINITY, -INFINITY, NAN, 1e7f}) {
    x[3] = bad;
    EXPECT_FALSE(quantize_q4f16(x, words.data(), scales.data())) << bad;
  }
}

TEST(Params, RopeRowsAreAPermutation) {
  const Piece piece{"q", 64, 16};
  std::vector<bool> seen(64);
  for (std::uint64_t row = 0; row < 64; ++row) {
    const std::uint64_t to = mlc_row(piece, row);
    ASSERT_LT(to, 64U);
    EXPECT_EQ(to / 16, row / 16);
    EXPECT_FALSE(seen[to]);
    seen[to] = true;
  }
  EXPECT_EQ(mlc_row(piece, 1), 8U);
  EXPECT_EQ(mlc_row(piece, 2), 1U);
  EXPECT_EQ(mlc_row({"v", 64, 0}, 37), 37U);
}

class Merges : public ::testing::Test {
 protected:
  MergeVocab vocab() {
    mergeable_.assign(tokens_.size(), 1);
    return {tokens_, mergeable_};
  }
  std::vector<std::string> tokens_ = {"a", "b", "c", "ab", "bc", "abc"};
  std::vector<std::uint8_t> mergeable_;
};

TEST_F(Merges, ScoresAndBack) {
  const std::vector<MergePair> merges = {{1, 2}, {0, 1}, {3, 2}, {0, 4}};
  const auto scores = scores_of_merges(vocab(), merges);
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_THAT(*scores, ElementsAre(0, 0, 0, -2, -1, -3));
  const auto back = merges_of_scores(vocab(), *scores);
  ASSERT_TRUE(back);
  EXPECT_EQ(scores_of_merges(vocab(), *back).value(), *scores);
}

TEST_F(Merges, WhatScoresCannotSayIsRefused) {
  EXPECT_THAT(scores_of_merges(vocab(), std::vector<MergePair>{{1, 2}, {0, 1}, {3, 2}}).error().message,
              HasSubstr("token \"abc\": \"a\" + \"bc\" is no merge"));
  EXPECT_THAT(scores_of_merges(vocab(), std::vector<MergePair>{{1, 2}, {3, 2}, {0, 1}, {0, 4}}).error().message,
              HasSubstr("their merges interleave at ranks 1 and 2"));
  EXPECT_THAT(scores_of_merges(vocab(), std::vector<MergePair>{{0, 0}}).error().message,
              HasSubstr("makes \"aa\", which is no token"));
  EXPECT_THAT(merges_of_scores(vocab(), std::vector<float>{0, 0, 0, -1, -1, -2}).error().message,
              HasSubstr("share the score -1"));
}

// Runs of spaces share a score in real vocabularies.
TEST_F(Merges, RunsMayShareAScore) {
  tokens_ = {"\u2581"};
  for (const int n : {2, 3, 4, 5, 6, 7, 8, 16}) {
    std::string text;
    for (int i = 0; i < n; ++i) text += "\u2581";
    tokens_.push_back(text);
  }
  const std::vector<float> scores(tokens_.size(), -1e9f);
  const auto merges = merges_of_scores(vocab(), scores);
  ASSERT_TRUE(merges) << merges.error().message;
  const auto back = scores_of_merges(vocab(), *merges);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(merges_of_scores(vocab(), *back).value(), *merges);
}

TEST(PreNames, EveryFormIsReadBack) {
  for (const auto& [name, read] : {std::pair{"gpt-2", "gpt-2"},
                                   {"smollm", "smollm"},
                                   {"starcoder", "smollm"},
                                   {"llama-bpe", "llama-bpe"},
                                   {"llama3", "llama-bpe"},
                                   {"tekken", "tekken"}}) {
    const auto row = pre_of_name(name);
    ASSERT_TRUE(row);
    const Json json = json_of_pre(**row);
    const auto back = pre_of_json(&json, "f");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ((*back)->name, read);
  }
  EXPECT_THAT(pre_of_name("qwen2").error().message, HasSubstr("known: gpt-2"));
}

// The formula of Llama 3.1's release: kept below 8192 / 4 tokens a turn, divided by 8 above 8192 / 1, mixed between.
TEST(Rope, Llama3Divisors) {
  ChatConfig c;
  c.rope_dim = 128;
  c.rope_theta = 500000;
  c.rope_factor = 8;
  c.rope_original_context = 8192;
  const auto divisors = llama3_divisors(c);
  ASSERT_EQ(divisors.size(), 64U);
  for (std::size_t i = 0; i < divisors.size(); ++i) {
    const double length = 2 * M_PI * std::pow(500000.0, static_cast<double>(i) / 64);
    double wanted = 8;
    if (length < 8192.0 / 4) wanted = 1;
    if (length >= 8192.0 / 4 && length <= 8192) {
      const double smooth = (8192 / length - 1) / 3;
      wanted = 1 / ((1 - smooth) / 8 + smooth);
    }
    EXPECT_NEAR(divisors[i], wanted, 1e-5 * wanted) << i;
  }
}

TEST(Rope, LongropeFactor) {
  ChatConfig c;
  c.context_length = 131072;
  c.rope_original_context = 4096;
  EXPECT_NEAR(longrope_attn_factor(c), 1.1902380714238083, 1e-12);
  c.context_length = 4096;
  EXPECT_EQ(longrope_attn_factor(c), 1.0);
}

}  // namespace
}  // namespace zinc_rt::mlc
