// Scenario files: each runs with all invariants and meets its expectations; the text form goes round and refuses with a
// line number.
#include "sched/sim/scenario.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "sched/sim/random.h"
#include "sched/sim/simulator.h"

namespace zinc_rt::sched::sim {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::filesystem::path> scenario_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(ZRT_SOURCE_DIR "/tests_cpp/sched/scenarios"))
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

TEST(Scenario, EveryFileHoldsAndMeetsItsExpectations) {
  const auto files = scenario_files();
  EXPECT_GE(files.size(), 16u);
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename());
    const auto scenario = parse_scenario(text_of(file));
    ASSERT_TRUE(scenario) << scenario.error().message;
    EXPECT_FALSE(scenario->expected.empty());
    const SimResult result = simulate(*scenario);
    EXPECT_FALSE(result.violation) << result.violation->rule << ": " << result.violation->text;
  }
}

TEST(Scenario, AnExpectationThatIsNotMetFails) {
  const auto scenario = parse_scenario("tenant 0\nat 0 submit 0 tenant=0\nexpect finish 0 cancelled\n");
  ASSERT_TRUE(scenario);
  const SimResult result = simulate(*scenario);
  ASSERT_TRUE(result.violation);
  EXPECT_EQ(result.violation->rule, "expect");
}

TEST(Scenario, TextGoesRound) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::string text = print_scenario(random_scenario(seed, {.with_faults = true}));
    const auto again = parse_scenario(text);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(print_scenario(*again), text);
  }
  for (const auto& file : scenario_files()) {
    const std::string text = print_scenario(*parse_scenario(text_of(file)));
    EXPECT_EQ(print_scenario(*parse_scenario(text)), text);
  }
}

TEST(Scenario, RefusesWithTheLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"tenant 0\nnonsense\n",
       "line 2: options, cost, drafts, tenant, at, step, fault or expect wanted, \"nonsense\" there"},
      {"options slots=0\n", "line 1: 0 slots, 1 to 4096 wanted"},
      {"options pages=4294967295\n", "line 1: 4294967295 pages"},
      {"options context=17\n", "line 1: a context of 17 tokens"},
      {"options slots\n", "line 1: name=value wanted, \"slots\" there"},
      {"options speed=3\n", "line 1: a options line has no field \"speed\""},
      {"options slots=3x\n", "line 1: slots=3x is no value of that field"},
      {"cost base=nan\n", "line 1: a cost of nan us"},
      {"tenant 0 weight=0\n", "line 1: a rate or weight of 0"},
      {"tenant 0\n\ntenant 0\n", "line 3: tenant 0 is there already"},
      {"at 0 submit 0 tenant=1\n", "line 1: there is no tenant 1"},
      {"at -1 cancel 0\n", "line 1: at -1, 0 to"},
      {"at 0 fly 0\n", "line 1: an event wanted, \"fly\" there"},
      {"at 0 cancel\n", "line 1: the number of a request wanted, the line has 3 words"},
      {"tenant 0\nat 0 submit 0 tenant=0\nat 1 submit 0 tenant=0\n", "line 3: request 0 is there already"},
      {"expect finish 0 fun\n", "line 1: why it ends wanted, \"fun\" there"},
      {"options chunk=99999999999999999999\n", "is no value of that field"},
  };
  for (const auto& [text, message] : cases) {
    const auto scenario = parse_scenario(text);
    ASSERT_FALSE(scenario) << text;
    EXPECT_NE(scenario.error().message.find(message), std::string::npos) << scenario.error().message;
  }
}

// A byte more, less or other anywhere: refused or run, never a crash.
TEST(Scenario, ChangedBytesAreRefusedOrParsed) {
  const std::string text = text_of(scenario_files().front());
  for (std::size_t i = 0; i < text.size(); ++i)
    for (const char c : {'\0', '\n', '=', ' ', '9', '-', 'x', '\xff'}) {
      std::string changed = text;
      changed[i] = c;
      const auto scenario = parse_scenario(changed);
      EXPECT_TRUE(scenario || scenario.error().message.starts_with("[scenario] line ")) << scenario.error().message;
    }
}

}  // namespace
}  // namespace zinc_rt::sched::sim
