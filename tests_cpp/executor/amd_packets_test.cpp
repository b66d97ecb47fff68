// The packets of a decode step on tiers of AMD GPUs: as text against files of the folder
// golden/, how many dwords they take, and that every way of running them gets the same. ZRT_ACCEPT=1 writes these files.
#include <gmock/gmock.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/mapped_file.h"
#include "model_fixture.h"
#include "ring/amd/packet_log.h"
#include "ring/amd/packet_text.h"
#include "ring/registry.h"

namespace zinc_rt {
namespace {

struct SubmitPathCase {
  const char *tier, *path;
};

class AmdStep : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto tier = ring::find_tier("t1");
    if (!tier) GTEST_SKIP() << tier.error().message;
  }
  void TearDown() override {
    ::unsetenv("ZINC_RT_PACKET_LOG");
    ::unsetenv("ZINC_RT_AMD_PATH");
  }
  // The log of a prompt of 5 tokens and a decode step.
  static MappedFile log_of(const SubmitPathCase& way) {
    const auto path = (std::filesystem::path(::testing::TempDir()) / "amd_step.log").string();
    ::setenv("ZINC_RT_PACKET_LOG", path.c_str(), 1);
    ::setenv("ZINC_RT_AMD_PATH", way.path, 1);
    {
      auto options = small_options();
      options.tier = way.tier;
      const auto executor = open(GetParam(), options);
      Outcome outcome;
      const auto ids = prompt(6);
      for (const std::size_t first : {0, 5}) {
        TestStep input;
        append(input, ids, first, first == 0 ? 5 : 1, 0, pages_from(0, 16), false);
        step(*executor, input, outcome);
      }
    }
    return *MappedFile::open(path);
  }
};

// What the compiler decides may change with it: registers' numbers, code that is fetched ahead.
std::string without_code(const std::string& text) {
  constexpr std::string_view kRegister = "PGM_RSRC";
  std::string kept;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find(kRegister);
    // The name goes on with one digit.
    kept += (at == std::string::npos ? line : line.substr(0, at + kRegister.size() + 1)) + '\n';
  }
  return kept;
}

TEST_P(AmdStep, IsTheGoldenStream) {
  const auto log = log_of({"t1", "pm4"});
  const auto records = ring::read_packet_log(log.bytes());
  ASSERT_TRUE(records) << records.error().message;
  const auto texts = ring::packet_log_text(*records);
  ASSERT_TRUE(texts) << texts.error().message;
  ASSERT_EQ(texts->size(), 2u);
  const auto file = std::filesystem::path(ZRT_SOURCE_DIR) / "tests_cpp/executor/golden" / (GetParam() + ".pm4");
  if (std::getenv("ZRT_ACCEPT") != nullptr) std::ofstream(file) << without_code(texts->back());
  std::stringstream wanted;
  wanted << std::ifstream(file).rdbuf();
  EXPECT_EQ(without_code(texts->back()), wanted.str()) << "ZRT_ACCEPT=1 accepts what it is now";
}

// docs/amd.md has these numbers.
TEST_P(AmdStep, TakesFewDwords) {
  const auto log = log_of({"t1", "pm4"});
  const auto records = *ring::read_packet_log(log.bytes());
  const auto run = std::ranges::find(records.rbegin(), records.rend(), ring::LogRecord::kRun, &ring::LogRecord::kind);
  const auto counts = ring::count_packets(ring::packets_of(*run));
  ASSERT_TRUE(counts);
  EXPECT_GT(counts->dispatches, 10u);
  EXPECT_LE(counts->barriers, counts->dispatches);
  EXPECT_LE(counts->most_of_a_dispatch, 22u);
  EXPECT_EQ(counts->most_of_a_barrier, 10u);
  std::printf("%s: %llu dwords, %llu dispatches, %llu barriers\n", GetParam().c_str(),
              static_cast<unsigned long long>(counts->dwords), static_cast<unsigned long long>(counts->dispatches),
              static_cast<unsigned long long>(counts->barriers));
}

TEST_P(AmdStep, IsTheSameByEveryWay) {
  std::vector<std::string> first;
  for (const SubmitPathCase& way : {SubmitPathCase{"t1", "pm4"}, {"t1", "aql"}, {"t1", "cs"}, {"t2", ""}}) {
    const auto log = log_of(way);
    const auto texts = *ring::packet_log_text(*ring::read_packet_log(log.bytes()));
    if (first.empty()) first = texts;
    EXPECT_EQ(texts, first) << way.tier << " " << way.path;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, AmdStep, ::testing::Values("tiny_llama_k-Q4_K_M", "tiny_gemma3-f16"),
                         [](const auto& info) {
                           std::string name = info.param;
                           const auto is_other = [](unsigned char c) { return std::isalnum(c) == 0; };
                           std::ranges::replace_if(name, is_other, '_');
                           return name;
                         });

// A log on a fresh device of every kind; and damage is named.
TEST(AmdReplay, IsEqualBitForBitAndDamageIsNamed) {
  const auto t1 = ring::find_tier("t1");
  if (!t1) GTEST_SKIP() << t1.error().message;
  const auto path = (std::filesystem::path(::testing::TempDir()) / "amd_replay.log").string();
  ::setenv("ZINC_RT_PACKET_LOG", path.c_str(), 1);
  {
    auto options = small_options();
    options.tier = "t1";
    const auto executor = open("tiny_llama_k-Q4_K_M", options);
    Outcome outcome;
    TestStep input;
    append(input, prompt(3), 0, 3, 0, pages_from(0, 16), false);
    step(*executor, input, outcome);
  }
  ::unsetenv("ZINC_RT_PACKET_LOG");
  const auto log = *MappedFile::open(path);
  for (const char* name : {"t1", "t2"}) {
    const auto checks = (*ring::find_tier(name))->diagnostics->replay(log.bytes());
    ASSERT_TRUE(checks) << checks.error().message;
    ASSERT_EQ(checks->size(), 1u);
    EXPECT_EQ(checks->front().error, "") << name;
  }
  const auto replay = (*t1)->diagnostics->replay;
  EXPECT_THAT(replay({}).error().message, ::testing::HasSubstr("no log of packets"));
  EXPECT_THAT(replay(log.bytes().first(log.bytes().size() - 1)).error().message, ::testing::HasSubstr("cut short"));
  // A bit of a weight, in the first page of the first region that has one.
  std::vector<std::byte> damaged(log.bytes().begin(), log.bytes().end());
  const auto records = *ring::read_packet_log(damaged);
  const auto pages = std::ranges::find(records, ring::LogRecord::kPages, &ring::LogRecord::kind);
  damaged[static_cast<std::size_t>(pages->bytes.data() - damaged.data()) + 2000] ^= std::byte{1};
  const auto checks = replay(damaged);
  ASSERT_TRUE(checks) << checks.error().message;
  EXPECT_THAT(checks->front().error, ::testing::HasSubstr("differs"));
}

}  // namespace
}  // namespace zinc_rt
