// The tiers of all executors, and the choice among them.
#include "executor/registry.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/platform/gpus.h"

namespace zinc_rt {
namespace {

using ::testing::HasSubstr;

bool is_built(std::string_view name) {
  return std::ranges::any_of(executor_tiers(), [&](const TierEntry& entry) { return entry.tier.name == name; });
}

TEST(Registry, AutoPicksTheBestAndSaysWhyNotTheOthers) {
  const auto choice = pick_tier("auto");
  ASSERT_TRUE(choice);
  const auto& best = choice->entry.tier;
  EXPECT_GE(best.priority, 0);
  for (const TierEntry& entry : executor_tiers())
    EXPECT_TRUE(entry.tier.priority <= best.priority || !entry.tier.unavailable_reason().empty()) << entry.tier.name;
  EXPECT_FALSE(choice->why.empty());
  for (const auto& name : known_tier_names()) {
    const bool is_rejected =
        std::ranges::any_of(choice->rejected, [&](const std::string& line) { return line.starts_with(name + ": "); });
    EXPECT_TRUE(is_built(name) || is_rejected) << name;
  }
}

TEST(Registry, ForcedTiersAreThemselvesOrAnError) {
  for (const auto& name : known_tier_names()) {
    const auto choice = pick_tier(name);
    if (choice) {
      EXPECT_EQ(choice->entry.tier.name, name);
      continue;
    }
    EXPECT_EQ(choice.error().code, StatusCode::kUnavailable);
    EXPECT_THAT(choice.error().message, HasSubstr(name));
  }
  const auto cpu = pick_tier("t_cpu");
  ASSERT_TRUE(cpu);
  EXPECT_EQ(cpu->entry.executor->name, "ring");
  if (is_built("t_metal")) return;
  EXPECT_THAT(pick_tier("t_metal").error().message, HasSubstr("it has: auto, "));
}

TEST(Registry, UnknownNamesListTheKnown) {
  for (const auto* name : {"t3", "", "AUTO", "t_cpu "}) {
    const auto choice = pick_tier(name);
    ASSERT_FALSE(choice);
    EXPECT_EQ(choice.error().code, StatusCode::kInvalidArgument);
    for (const auto& known : known_tier_names()) EXPECT_THAT(choice.error().message, HasSubstr(known));
  }
}

// A peer backend is taken by its name alone; with a tier of another backend, both are named.
TEST(Registry, APeerIsTakenOnlyWhenAskedFor) {
  EXPECT_EQ(backend_names(), (std::vector<std::string>{"zinc_rt", "vulkan"}));
  EXPECT_EQ(pick_tier("auto")->entry.executor->backend, kOwnBackend);
  EXPECT_EQ(pick_tier("auto", "zinc_rt")->entry.tier.name, pick_tier("auto")->entry.tier.name);
  const auto peer = pick_tier("auto", "vulkan");
  if (peer)
    EXPECT_EQ(peer->entry.tier.name, "vulkan");
  else
    EXPECT_THAT(peer.error().message, HasSubstr("vulkan was asked for but "));
  EXPECT_THAT(pick_tier("t_cpu", "vulkan").error().message,
              HasSubstr("t_cpu is of backend zinc_rt, but backend vulkan was asked for"));
  EXPECT_THAT(pick_tier("auto", "metal").error().message,
              HasSubstr("unknown backend \"metal\"; one of: zinc_rt, vulkan"));
  if (is_built("vulkan")) {
    EXPECT_THAT(pick_tier("vulkan", "zinc_rt").error().message, HasSubstr("vulkan is of backend vulkan, but"));
  }
}

TEST(Registry, NoTwoTiersHaveOneName) {
  auto names = known_tier_names();
  std::ranges::sort(names);
  EXPECT_TRUE(std::ranges::adjacent_find(names) == names.end());
  EXPECT_THAT(names, ::testing::IsSupersetOf({"t_cpu", "null"}));
}

TEST(Advice, OnAGpuThatNoTierTakes) {
  const std::vector<std::string> none, nvidia{"NVIDIA"}, both{"NVIDIA", "AMD"}, intel{"Intel"};
  EXPECT_EQ(advice_on_gpus(none, "t_cpu"), "");
  EXPECT_EQ(advice_on_gpus(nvidia, "t_cpu"), "");
  EXPECT_EQ(advice_on_gpus(both, "t_cuda"), "");
  EXPECT_THAT(advice_on_gpus(both, "t_cpu"), HasSubstr("a GPU of AMD is here"));
  // Built: how it is taken; left out: how it is built.
  EXPECT_THAT(advice_on_gpus(intel, "t_cpu"), HasSubstr(is_built("vulkan") ? "--backend vulkan" : "scripts/demo.sh"));
}

TEST(Advice, GpusAreThoseOfRenderNodes) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "zrt_drm";
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(gpu_makers(folder).empty());
  for (const auto& [node, number] :
       {std::pair("renderD129", "0x8086"), std::pair("renderD128", "0x1002"), std::pair("renderD130", "0x10de"),
        std::pair("renderD131", "0x1af4"), std::pair("card0", "0x1002")}) {
    std::filesystem::create_directories(folder / node / "device");
    std::ofstream(folder / node / "device" / "vendor") << number << "\n";
  }
  std::filesystem::create_directories(folder / "renderD132");  // not on a bus
  EXPECT_THAT(gpu_makers(folder), ::testing::ElementsAre("AMD", "Intel", "NVIDIA", "0x1af4"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace zinc_rt
