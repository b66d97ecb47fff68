// The peer backend beside T-CPU: the same calls on both, and what they give must be equal bit for bit.
#pragma once

#include "base/options.h"
#include "tests_cpp/executor/model_fixture.h"
#include "vulkan/self_test.h"
#include "vulkan/vulkan_executor.h"

namespace zinc_rt::vulkan {

// The device of these tests: that of ZINC_RT_VULKAN_DEVICE, else a GPU, else Mesa's processor device.
inline Result<DeviceInfo> test_device() {
  const auto wanted = options::get("ZINC_RT_VULKAN_DEVICE");
  auto chosen = choose_device(wanted);
  return chosen || !wanted.empty() ? chosen : choose_device("llvmpipe");
}

#define ZRT_NEED_VULKAN() \
  if (const auto found = test_device(); !found) GTEST_SKIP() << "no Vulkan device: " << found.error().message

// A device with its arithmetic proven once for all tests; shared_bytes: said to be a workgroup's, 0 leaves it. One that
// has matrices uses them where a test wants matrices by hand: NVIDIA's compiler (580.159) crashes over these kernels.
// Throws where it does not open, as model_fixture.h's open does.
inline std::shared_ptr<Device> open_new_device(Faults faults = {}, std::uint32_t shared_bytes = 0) {
  struct Proof {
    Fma fma;
    bool has_matrices;
  };
  static const auto proof = []() -> Result<Proof> {
    const auto device = Device::open(*test_device());
    if (!device) return std::unexpected(device.error());
    if (const auto proven = prove_arithmetic(**device); !proven) return std::unexpected(proven.error());
    return Proof{(*device)->fma(), (*device)->uses_matrices()};
  }();
  if (!proof) throw std::runtime_error(proof.error().message);
  auto info = *test_device();
  if (shared_bytes > 0) info.shared_bytes = shared_bytes;
  faults.matrices_by_hand = faults.matrices_by_hand && !info.has_matrices;
  auto device = Device::open(info, faults);
  if (!device) throw std::runtime_error(device.error().message);
  (*device)->use(proof->fma);
  (*device)->use_matrices(proof->has_matrices);
  return std::move(*device);
}

// The device that all tests of a process have one after another, since a driver may take longer for the pipelines of a
// model than for the test. It ends before the driver does.
struct DeviceOfTests final : ::testing::Environment {
  static inline std::shared_ptr<Device> device;
  void TearDown() override { device.reset(); }
};
inline ::testing::Environment* const kDeviceOfTests = ::testing::AddGlobalTestEnvironment(new DeviceOfTests);

// That one, or another one while some test has it.
inline std::shared_ptr<Device> open_device() {
  auto& kept = DeviceOfTests::device;
  if (kept.use_count() > 1) return open_new_device();
  if (kept == nullptr) kept = open_new_device();
  return kept;
}

inline std::unique_ptr<Executor> open_vulkan(const std::string& model, const ExecutorOptions& options,
                                             std::shared_ptr<Device> device = open_device()) {
  auto executor = VulkanExecutor::open_on(std::move(device), model_path(model), options);
  if (!executor) throw std::runtime_error(executor.error().message);
  return std::move(*executor);
}

// The calls on T-CPU and on Vulkan.
template <class Calls>
void run_both(const std::string& model, const ExecutorOptions& options, const Calls& calls, Outcome& cpu_outcome,
              Outcome& outcome, std::shared_ptr<Device> device = open_device()) {
  const auto cpu = open(model, options);
  const auto peer = open_vulkan(model, options, std::move(device));
  calls(*cpu, cpu_outcome);
  calls(*peer, outcome);
  EXPECT_FALSE(outcome.tokens.empty());
}
template <class Calls>
void expect_same(const std::string& model, const ExecutorOptions& options, const Calls& calls,
                 std::shared_ptr<Device> device = open_device()) {
  Outcome a, b;
  run_both(model, options, calls, a, b, std::move(device));
  EXPECT_EQ(a.tokens, b.tokens) << model;
  EXPECT_EQ(a, b) << model;
}

// The residual stream after each layer, and before the first.
inline void expect_same_hidden(const std::string& model) {
  const auto cpu = open(model);
  const auto peer = open_vulkan(model, small_options());
  TestStep input;
  append(input, prompt(11), 0, 11, 0, pages_from(0));
  for (int layer = -1; layer < static_cast<int>(cpu->config().n_layers); ++layer) {
    const auto a = cpu->hidden(input.view(), layer), b = peer->hidden(input.view(), layer);
    ASSERT_TRUE(a && b);
    ASSERT_EQ(a->size(), b->size());
    EXPECT_EQ(std::memcmp(a->data(), b->data(), a->size() * sizeof(float)), 0) << "layer " << layer;
  }
  EXPECT_FALSE(peer->hidden(input.view(), 99));
}

// A prompt in chunks of several sizes, beyond a chunk of attention, with the logits of each position.
inline void prompt_in_chunks(Executor& executor, Outcome& outcome) {
  for (const std::size_t chunk : {70, 33, 7}) {
    const auto part = run_prompt(executor, prompt(chunk == 70 ? 128 : 20), chunk);
    outcome.logits.insert(outcome.logits.end(), part.logits.begin(), part.logits.end());
    outcome.tokens.insert(outcome.tokens.end(), part.tokens.begin(), part.tokens.end());
  }
}

// Prompts of several slots in one step, then decode steps of more and more of them; pages in no order.
inline void batches_of_slots(Executor& executor, Outcome& outcome) {
  const std::size_t n_slots = executor.info().max_slots;
  std::vector<std::size_t> held(n_slots);
  const auto add = [&](TestStep& to, std::size_t slot, std::size_t n) {
    append(to, prompt(12, 100 + static_cast<unsigned>(slot)), held[slot], n, slot,
           {static_cast<std::uint32_t>(n_slots - 1 - slot)}, false);
    held[slot] += n;
  };
  TestStep prefill;
  for (std::size_t slot = 0; slot < n_slots; ++slot) add(prefill, slot, 1 + slot % 5);
  step(executor, prefill, outcome);
  for (const std::size_t n : {std::size_t{1}, std::size_t{3}, n_slots / 2, n_slots}) {
    TestStep decode;
    for (std::size_t slot = 0; slot < n; ++slot) add(decode, slot, 1);
    step(executor, decode, outcome);
  }
}

// Positions around the border of a chunk of attention, and beyond a second one.
inline void long_history(Executor& executor, Outcome& outcome) {
  const auto ids = prompt(290);
  for (const auto& [first, n] : std::vector<std::pair<std::size_t, std::size_t>>{
           {0, 125}, {125, 1}, {126, 1}, {127, 1}, {128, 1}, {129, 150}, {279, 11}}) {
    TestStep input;
    append(input, ids, first, n, 0, pages_from(0, 20), false);
    step(executor, input, outcome);
  }
}
inline ExecutorOptions long_options() {
  auto options = small_options();
  options.max_context = 320;
  options.chunk_cap = 256;
  return options;
}

// A slot goes on from a copy of what another one had read; its own prompt comes to nothing. Models without recurrent
// state have nothing to copy, and other pages then.
inline ExecutorOptions checkpoint_options() {
  auto options = small_options();
  options.state_checkpoints = 2;
  return options;
}
inline void checkpoints_of_state(Executor& executor, Outcome& outcome) {
  const auto ids = prompt(60), other = prompt(60, 7);
  const std::uint32_t first = executor.info().max_slots, second = first + 1;
  const auto run = [&](const std::vector<std::int32_t>& text, std::size_t from, std::size_t n, std::size_t slot,
                       std::uint32_t page) {
    TestStep input;
    append(input, text, from, n, slot, pages_from(page));
    step(executor, input, outcome);
  };
  run(ids, 0, 16, 0, 0);
  ASSERT_TRUE(executor.copy_state({{{0, first}}}));
  run(ids, 16, 16, 0, 0);
  ASSERT_TRUE(executor.copy_state({{{0, second}}}));
  run(other, 0, 60, 0, 8);
  ASSERT_TRUE(executor.copy_state({{{second, 0}, {first, 1}}}));
  run(ids, 32, 28, 0, 0);
  run(ids, 16, 20, 1, 0);
  EXPECT_FALSE(executor.copy_state({{{0, second + 1}}}));
}

inline void sampling_of_all_kinds(Executor& executor, Outcome& outcome) {
  const auto ids = prompt(20);
  std::vector<Sampling> kinds(8);
  for (auto& s : kinds) s.temperature = 0.9f, s.seed = 77;
  kinds[1].top_k = 20;
  kinds[2].top_p = 0.8f;
  kinds[3].min_p = 0.05f;
  kinds[4].typical_p = 0.6f;
  kinds[5].repetition_penalty = 1.3f, kinds[5].presence_penalty = 0.2f, kinds[5].frequency_penalty = 0.4f;
  kinds[6] = kinds[5], kinds[6].temperature = 0, kinds[6].top_k = 5;
  kinds[7].top_k = 40, kinds[7].top_p = 0.9f, kinds[7].typical_p = 0.8f, kinds[7].temperature = 1.7f;
  const std::vector<TokenBias> bias{{5, 3.0f}, {9, -2.0f}, {5, 0.5f}, {-4, 1.0f}};
  const std::vector<std::int32_t> banned{1, 2, 3};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    TestStep input;
    append(input, ids, 0, 9, 0, pages_from(0));
    for (auto& row : input.outputs) {
      row.sampling = kinds[i];
      row.sampling.seed += row.position;
      row.history = std::span(ids).first(row.position);
      row.n_prompt = row.position / 2;
      row.wants_logits = row.position % 3 != 0;
      row.is_processed = row.position % 4 == 0;
      if (i % 2 == 0) row.bias = bias, row.banned = banned;
    }
    input.process = [](std::uint32_t row, std::span<float> logits) { logits[row] += 4; };
    step(executor, input, outcome);
  }
}

}  // namespace zinc_rt::vulkan
