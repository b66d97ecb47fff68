// The schedules of sameness_slow.cpp on the peer backend, with up to 16 slots, against each request alone on T-CPU.
#include <cstdlib>

#include "executor/registry.h"
#include "schedule.h"

namespace zinc_rt {
namespace {

std::unique_ptr<Executor> open_vulkan(const std::string& model, const ExecutorOptions& options) {
  auto on_vulkan = options;
  on_vulkan.tier = "vulkan";
  auto executor = open_executor(model_path(model), on_vulkan);
  EXPECT_TRUE(executor) << (executor ? "" : executor.error().message);
  return executor ? std::move(*executor) : nullptr;
}

class SamenessOnVulkan : public ::testing::TestWithParam<FamilyCase> {
 protected:
  // Mesa's processor device, where nobody names another one.
  static void SetUpTestSuite() { setenv("ZINC_RT_VULKAN_DEVICE", "llvmpipe", 0); }
  void SetUp() override {
    if (const auto picked = pick_tier("vulkan"); !picked) GTEST_SKIP() << picked.error().message;
  }
};

TEST_P(SamenessOnVulkan, OfRequestsAloneAndAmongOthers) {
  play_schedules(GetParam(), 30, 1, 30);
}

const FamilyCase kOnVulkan[] = {
    {"tiny_llama_k-Q4_K_M", 128, 1, 80, "f16", 1, open_vulkan, 16},
    {"tiny_qwen3moe-Q8_0", 128, 1, 80, "i16", 1, open_vulkan, 16},
    {"tiny_qwen35moe-f16", 128, 1, 80, "f16", 1, open_vulkan, 16},
};
INSTANTIATE_TEST_SUITE_P(Models, SamenessOnVulkan, ::testing::ValuesIn(kOnVulkan), [](const auto& info) {
  auto name = info.param.model;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace zinc_rt
