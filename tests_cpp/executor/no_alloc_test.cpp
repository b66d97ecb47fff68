// A step that is like one before allocates nothing, on any thread: a request's latency never waits for the heap.
#include <thread>

#include "ring/registry.h"
#include "step_log_files.h"
#include "tests_cpp/base/counting_allocator.h"

namespace zinc_rt {
namespace {

struct TierAndModel {
  std::string tier, model;
};
void PrintTo(const TierAndModel& c, std::ostream* out) {
  *out << c.model << " on " << c.tier;
}

class NoAlloc : public ::testing::TestWithParam<TierAndModel> {
 protected:
  static constexpr std::uint32_t kWidth = 8;
  void SetUp() override {
    ZRT_NEED_ALLOCATION_COUNT();
    auto options = small_options();
    options.tier = GetParam().tier;
    options.state_checkpoints = 1;
    executor_ = open(GetParam().model, options);
    ASSERT_NE(executor_, nullptr);
    for (std::uint32_t i = 0; i < pages_.size(); ++i) pages_[i] = i;
    input_.on_logits = [this](std::uint32_t, std::span<const float> logits) { n_logits_ += logits.size(); };
    input_.on_logprobs = [this](std::uint32_t, std::span<const RowLogprobs> rows) { n_logprobs_ += rows.size(); };
  }
  // n tokens of a slot from a position on, with an output row for the last.
  void add(std::int32_t slot, std::uint32_t first, std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) {
      input_.token_ids.push_back(static_cast<std::int32_t>((first + i) % 200));
      input_.positions.push_back(static_cast<std::int32_t>(first + i));
      input_.slots.push_back(slot);
    }
    OutputRow row;
    row.token_index = static_cast<std::uint32_t>(input_.token_ids.size() - 1);
    row.position = first + n;
    row.sampling = {{0.7f, 20, 0.9f, 0.01f, 1.1f, 0.1f, 0.1f}, 5};
    row.history = std::span(history_).first(row.position);
    row.n_prompt = 1;
    if (executor_->info().has_logprobs) row.n_logprobs = 5;
    input_.outputs.push_back(row);
  }
  bool run() { return executor_->step(input_, output_).has_value() && output_.tokens.size() == input_.outputs.size(); }
  void start() {
    input_.clear();
    input_.page_tables = {pages_, kWidth, counts_};
    input_.rope_variants = variants_;
  }
  bool decode(std::uint32_t at) {
    start();
    for (const std::int32_t slot : {0, 1, 2}) add(slot, at, 1);
    return run();
  }
  bool mixed(std::uint32_t at) {
    start();
    add(1, at, 1);
    add(0, at - at % 8, 8);
    add(2, at, 1);
    return run();
  }
  bool copy() {
    return executor_->copy_state({{{0, 3}}}).has_value() && executor_->copy_pages({{{2, 4}, {3, 5}}}).has_value();
  }

  std::unique_ptr<Executor> executor_;
  std::vector<std::uint32_t> pages_ = std::vector<std::uint32_t>(3 * kWidth), counts_ = {kWidth, kWidth, kWidth},
                             variants_ = {0, 0, 0};
  std::vector<std::int32_t> history_ = std::vector<std::int32_t>(128, 7);
  StepInput input_;
  StepOutput output_;
  std::size_t n_logits_ = 0, n_logprobs_ = 0;
};

TEST_P(NoAlloc, HundredStepsAfterWarmUp) {
  ASSERT_TRUE(mixed(0) && decode(1) && copy());  // warm-up: each kind of step once
  std::uint64_t n_allocated = 0;
  bool good = true;
  {
    const AllocationCount count;
    for (std::uint32_t i = 0; i < 100; ++i) good = good && decode(2 + i) && mixed(2 + i) && copy();
    n_allocated = count.so_far();
  }
  EXPECT_TRUE(good);
  EXPECT_EQ(n_allocated, 0u);
  EXPECT_EQ(n_logits_, 202 * 3 * executor_->config().vocab_size);
  EXPECT_EQ(n_logprobs_, executor_->info().has_logprobs ? 202 * 3u : 0u);
}

TEST_P(NoAlloc, HundredRecordedSteps) {
  const LogFile file;
  executor_ = recording(std::move(executor_), file.path(), false);
  // The log's buffers grow with the histories. Steps use two copies of the input by turns.
  ASSERT_TRUE(mixed(101) && mixed(101) && decode(101) && copy());
  std::uint64_t n_allocated = 0;
  bool good = true;
  {
    const AllocationCount count;
    for (std::uint32_t i = 0; i < 100; ++i) good = good && decode(2 + i) && mixed(2 + i) && copy();
    n_allocated = count.so_far();
  }
  EXPECT_TRUE(good);
  EXPECT_EQ(n_allocated, 0u);
  executor_.reset();
  EXPECT_EQ(read_log(file.bytes()).records.size(), 2 * 203 + 2 * 101u);
}

std::vector<TierAndModel> tiers_and_models() {
  std::vector<TierAndModel> cases;
  for (const ring::Tier* tier : ring::tiers())
    if (tier->unavailable_reason().empty())
      for (const auto* model : {"llama_k-Q4_K_M", "qwen35moe-Q4_K_M", "gemma4_moe-f16", "phi3_longrope-f16"})
        cases.push_back({tier->name, model});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Tiers, NoAlloc, ::testing::ValuesIn(tiers_and_models()), [](const auto& info) {
  auto name = info.param.tier + "_" + info.param.model;
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(AllocationCount, CountsWhatAnyThreadAllocates) {
  ZRT_NEED_ALLOCATION_COUNT();
  std::uint64_t before = 0, here = 0, there = 0;
  {
    std::unique_ptr<int> kept;
    std::vector<std::vector<int>> rows(3);
    const AllocationCount count;
    before = count.so_far();
    kept = std::make_unique<int>(3);
    here = count.so_far();
    std::thread([&] {
      for (auto& row : rows) row.resize(1000);
    }).join();
    there = count.so_far();
  }
  const auto unarmed = std::make_unique<int>(4);
  EXPECT_EQ(before, 0u);
  EXPECT_EQ(here, 1u);
  EXPECT_GE(there, 4u);  // a thread has a state of its own
  EXPECT_EQ(n_allocations.load(), there);
}

}  // namespace
}  // namespace zinc_rt
