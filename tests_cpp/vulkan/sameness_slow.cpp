// The schedules of tests_cpp/engine/sameness_slow.cpp on the peer backend, with up to 16 slots, against each request alone
// on T-CPU.
#include "same_bits.h"
#include "tests_cpp/engine/schedule.h"

namespace zinc_rt::vulkan {
namespace {

std::unique_ptr<Executor> open_peer(const std::string& model, const ExecutorOptions& options) {
  return open_vulkan(model, options);
}

class SamenessOnVulkan : public ::testing::TestWithParam<FamilyCase> {
 protected:
  void SetUp() override { ZRT_NEED_VULKAN(); }
};

TEST_P(SamenessOnVulkan, OfRequestsAloneAndAmongOthers) {
  play_schedules(GetParam(), 30, 1, 30);
}

const FamilyCase kOnVulkan[] = {
    {"tiny_llama_k-Q4_K_M", 128, 1, 80, "f16", 1, open_peer, 16},
    {"tiny_qwen3moe-Q8_0", 128, 1, 80, "i16", 1, open_peer, 16},
    {"tiny_qwen35moe-f16", 128, 1, 80, "f16", 1, open_peer, 16},
};
INSTANTIATE_TEST_SUITE_P(Models, SamenessOnVulkan, ::testing::ValuesIn(kOnVulkan), [](const auto& info) {
  auto name = info.param.model;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace zinc_rt::vulkan
