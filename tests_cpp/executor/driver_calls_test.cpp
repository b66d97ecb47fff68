// What a step of T-CUDA asks of the driver, counted by the driver of the tests (tests_cpp/cuda_sim); with another one
// the test is skipped.
#include <dlfcn.h>

#include "model_fixture.h"
#include "ring/registry.h"

namespace zinc_rt {
namespace {

using CallCount = unsigned long (*)();

CallCount find_count() {
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver != nullptr ? reinterpret_cast<CallCount>(::dlsym(driver, "cuda_sim_calls")) : nullptr;
}

// A step like one before binds the thread to the device, which stays within the process, and launches one graph.
TEST(DriverCalls, AStepIsOneLaunch) {
  ZRT_NEED_FIXTURES();
  const auto tier = ring::pick_tier("t_cuda");
  if (!tier) GTEST_SKIP() << "no tier t_cuda here";
  const CallCount calls = find_count();
  if (calls == nullptr) GTEST_SKIP() << "NVIDIA's driver does not count its calls";
  auto options = small_options();
  options.tier = "t_cuda";
  const auto executor = open("qwen35moe-Q8_0", options);
  ASSERT_NE(executor, nullptr);
  const auto decode = [&](std::size_t at) {
    TestStep input;
    for (std::size_t slot = 0; slot < 3; ++slot)
      append(input, prompt(40), at, 1, slot, pages_from(static_cast<std::uint32_t>(8 * slot)));
    StepOutput output;
    const auto status = executor->step(input.view(), output);
    ASSERT_TRUE(status) << status.error().message;
  };
  decode(0);
  const unsigned long before = calls();
  for (std::size_t i = 1; i <= 20; ++i) decode(i);
  EXPECT_EQ(calls() - before, 2 * 20u);
}

}  // namespace
}  // namespace zinc_rt
