// Models whose experts do not fit the memory of T-CUDA's device, which the tests' own driver (tests_cpp/cuda_sim) makes
// as small as they want; with another driver they are skipped.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cstdlib>

#include "model_fixture.h"
#include "ring/registry.h"

namespace zinc_rt {
namespace {

using ::testing::HasSubstr;

class HostExperts : public ::testing::Test {
 protected:
  void SetUp() override {
    ZRT_NEED_SHARED_FIXTURES();
    const auto tier = ring::find_tier("t_cuda");
    if (!tier) GTEST_SKIP() << "no tier t_cuda here";
    void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (driver == nullptr || ::dlsym(driver, "cuda_sim_calls") == nullptr)
      GTEST_SKIP() << "NVIDIA's driver has the memory that it has";
    const auto ring = (*tier)->make_ring({});
    ASSERT_TRUE(ring);
    const auto memory = (*ring)->device_memory();
    ASSERT_TRUE(memory && *memory);
    taken_ = (*memory)->total - (*memory)->free;
  }
  void TearDown() override { ::unsetenv("ZRT_CUDA_SIM_BYTES"); }

  static ExecutorOptions cuda_options() {
    auto options = small_options();
    options.tier = "t_cuda";
    options.kv_pages = 24;
    return options;
  }
  // A device with so many bytes for a plan.
  void make_device(std::uint64_t bytes) const {
    ::setenv("ZRT_CUDA_SIM_BYTES", std::to_string(taken_ + bytes).c_str(), 1);
  }
  static std::uint64_t on_device(const Executor& executor) {
    return executor.plan().bytes(Heap::kDeviceLocal) + executor.plan().bytes(Heap::kBar);
  }
  static Outcome run(Executor& executor) {
    auto outcome = run_prompt(executor, prompt(40), 17);
    TestStep decode;
    for (std::size_t slot = 0; slot < 3; ++slot)
      append(decode, prompt(1), 0, 1, slot, pages_from(static_cast<std::uint32_t>(8 * slot)));
    step(executor, decode, outcome);
    return outcome;
  }

  std::uint64_t taken_ = 0;  // by the ring itself
};

TEST_F(HostExperts, BitsAreTheSameWithAnyNumberOfLayers) {
  const auto cpu = open("qwen3moe-Q6_K");
  ASSERT_NE(cpu, nullptr);
  const auto wanted = run(*cpu);
  const std::uint32_t n_layers = cpu->config().n_layers;
  std::uint64_t device = std::uint64_t{1} << 32, host = 0;
  for (std::uint32_t n_host = 0; n_host <= n_layers; ++n_host) {
    make_device(device);
    const auto executor = open("qwen3moe-Q6_K", cuda_options());
    ASSERT_NE(executor, nullptr);
    EXPECT_EQ(executor->info().n_host_expert_layers, n_host);
    EXPECT_EQ(executor->info().host_expert_bytes > host, n_host > 0);
    host = executor->info().host_expert_bytes;
    EXPECT_EQ(executor->plan().allocated_bytes(), executor->allocated_bytes());
    EXPECT_LE(on_device(*executor), device);
    if (n_host == 0 || n_host == 1 || n_host == n_layers) {
      EXPECT_EQ(run(*executor), wanted);
    }
    EXPECT_EQ(executor->plan().allocated_bytes(), executor->allocated_bytes());
    device = on_device(*executor) - 1;
  }
}

// The plan has what kernels leave to each other: steps of any size take copies of a few operands and nothing else.
TEST_F(HostExperts, StepsTakeNoMemoryOfTheDevice) {
  for (const auto* model : {"gemma4_moe-f16", "qwen35moe-Q8_0"}) {
    make_device(std::uint64_t{1} << 32);
    auto executor = open(model, cuda_options());
    ASSERT_NE(executor, nullptr);
    make_device(on_device(*executor) - 1);
    executor.reset();
    executor = open(model, cuda_options());
    ASSERT_NE(executor, nullptr);
    EXPECT_EQ(executor->info().n_host_expert_layers, 1u);
    const auto* scratch = executor->plan().find("scratch");
    ASSERT_NE(scratch, nullptr);
    ::unsetenv("ZRT_CUDA_SIM_BYTES");  // what is left would be less than the ring keeps for itself
    const auto before = executor->ring().device_memory();
    for (const std::size_t chunk : {128, 9}) run_prompt(*executor, prompt(128), chunk);
    const auto after = executor->ring().device_memory();
    ASSERT_TRUE(before && *before && after && *after);
    EXPECT_GT((*before)->free, (*after)->free);
    EXPECT_LT((*before)->free - (*after)->free, 16u << 10) << model;
    EXPECT_GT(scratch->bytes, 16u << 10);
  }
}

TEST_F(HostExperts, WhatDoesNotFitIsAnError) {
  std::uint64_t least = 0;
  {
    make_device(std::uint64_t{1} << 32);
    const auto executor = open("qwen35moe-Q8_0", cuda_options());
    ASSERT_NE(executor, nullptr);
    least = on_device(*executor) - executor->plan().find("kv_pages")->bytes;
    for (const auto& region : executor->plan().regions)
      if (region.name.starts_with("weights.moe.") && region.name != "weights.moe.router_weight") least -= region.bytes;
  }
  make_device(least);
  const auto executor = RingExecutor::open(model_path("qwen35moe-Q8_0"), cuda_options());
  ASSERT_FALSE(executor);
  EXPECT_EQ(executor.error().code, StatusCode::kExhausted);
  EXPECT_THAT(executor.error().message, HasSubstr("even with all experts"));
  EXPECT_THAT(executor.error().message, HasSubstr(std::to_string(least) + " of"));
  EXPECT_THAT(executor.error().message, HasSubstr("would fit"));
}

}  // namespace
}  // namespace zinc_rt
