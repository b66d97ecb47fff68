// An engine over a small model whose steps a test can watch, hold up and break.
// Thread rule: Probe's counters and Gate from any thread; Probe's functions are set before the engine starts and run
// where the steps run.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/core.h"
#include "tests_cpp/executor/model_fixture.h"

namespace zinc_rt {

struct Probe {
  std::atomic<std::uint64_t> n_steps{0}, n_page_copies{0}, n_restores{0};
  std::atomic<std::uint64_t> n_copied_for{0};  // slots for which something was copied since the step before, at most
  // Around the n-th step, n from 1; what fails, fails the step. `after` has the step done already.
  std::function<Status(const StepInput&, std::uint64_t n)> before, after;
  std::function<void(const StepInput&, StepOutput&)> change;  // what the step gave
};

class ProbeExecutor final : public Executor {
 public:
  ProbeExecutor(std::unique_ptr<Executor> inner, std::shared_ptr<Probe> probe)
      : inner_(std::move(inner)), probe_(std::move(probe)) {
    begun_.reserve(2);  // as many as an executor has under way: tests count what a step allocates
  }
  const ExecutorInfo& info() const override { return inner_->info(); }
  const ModelConfig& config() const override { return inner_->config(); }
  const Weights& weights() const override { return inner_->weights(); }
  const MemoryPlan& plan() const override { return inner_->plan(); }
  std::uint64_t allocated_bytes() const override { return inner_->allocated_bytes(); }
  RingExecutor* ring_executor() override { return inner_->ring_executor(); }
  std::uint32_t rope_variant(std::uint64_t n_tokens) const override { return inner_->rope_variant(n_tokens); }
  Result<std::vector<float>> hidden(const StepInput& input, int layer) override { return inner_->hidden(input, layer); }
  Status begin(const StepInput& input) override {
    const std::uint64_t n = ++probe_->n_steps;
    if (probe_->before)
      if (auto status = probe_->before(input, n); !status) return status;
    if (auto status = inner_->begin(input); !status) return status;
    begun_.push_back({&input, n});
    return {};
  }
  Status finish(StepOutput& output) override {
    const Begun begun = begun_.front();
    begun_.erase(begun_.begin());
    if (auto status = inner_->finish(output); !status) return status;
    if (probe_->change) probe_->change(*begun.input, output);
    auto status = probe_->after ? probe_->after(*begun.input, begun.n) : Status{};
    probe_->n_copied_for = 0;
    return status;
  }
  Status copy_state(std::span<const StateCopy> copies) override {
    const auto n = std::ranges::count_if(copies, [&](const auto& copy) { return copy.from >= info().max_slots; });
    probe_->n_restores += std::uint64_t(n);
    probe_->n_copied_for += std::uint64_t(n);
    return inner_->copy_state(copies);
  }
  Status copy_pages(std::span<const PageCopy> copies) override {
    probe_->n_page_copies += copies.size();
    probe_->n_copied_for += copies.size();
    return inner_->copy_pages(copies);
  }
  Status read_pages(std::span<const std::uint32_t> pages, std::span<std::byte> to) override {
    return inner_->read_pages(pages, to);
  }
  Status write_pages(std::span<const std::uint32_t> pages, std::span<const std::byte> from) override {
    return inner_->write_pages(pages, from);
  }

 private:
  std::unique_ptr<Executor> inner_;
  std::shared_ptr<Probe> probe_;
  struct Begun {
    const StepInput* input;
    std::uint64_t n;
  };
  std::vector<Begun> begun_;  // the steps that have begun and not ended, in order
};

// Lets as many through as it was told to; open for all at first.
class Gate {
 public:
  void close() {
    const std::lock_guard lock(mutex_);
    n_free_ = 0;
  }
  void let(std::uint64_t n) {
    const std::lock_guard lock(mutex_);
    n_free_ = n_free_ > UINT64_MAX - n ? UINT64_MAX : n_free_ + n;
    changed_.notify_all();
  }
  void open() { let(UINT64_MAX); }
  void pass() {
    std::unique_lock lock(mutex_);
    ++n_arrived_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return n_free_ > 0; });
    if (n_free_ != UINT64_MAX) --n_free_;
  }
  // Until the n-th has come, n from 1; false when it has not in ten seconds.
  bool wait_arrived(std::uint64_t n) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return n_arrived_ >= n; });
  }
  std::uint64_t n_arrived() {
    const std::lock_guard lock(mutex_);
    return n_arrived_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t n_free_ = UINT64_MAX, n_arrived_ = 0;
};

struct TestEngine {
  std::shared_ptr<Probe> probe;
  std::shared_ptr<EngineCore> core;

  Tenant tenant(const std::string& name, const std::optional<TenantQuota>& quota = {}) const {
    auto state = core->tenant(name, quota);
    EXPECT_TRUE(state) << (state ? "" : state.error().message);
    return {core, std::move(*state)};
  }
  Session session(const std::string& name = "alice", const std::optional<TenantQuota>& quota = {}) const {
    return *tenant(name, quota).session();
  }
  nlohmann::json stats() const { return nlohmann::json::parse(to_json(core->stats())); }
  std::uint64_t stat(const char* key) const { return stats()[key].get<std::uint64_t>(); }
};

// Opens a model of the fixtures; throws where that fails.
using Opener = std::unique_ptr<Executor> (*)(const std::string& model, const ExecutorOptions& options);
inline std::unique_ptr<Executor> open_on_ring(const std::string& model, const ExecutorOptions& options) {
  return open(model, options);
}

// A model that guesses for another one; a probe of its own sees its steps.
struct TestDraft {
  std::string model;
  ExecutorOptions options;
  std::shared_ptr<Probe> probe = std::make_shared<Probe>();
};

// Whether `draft` reads the KV pages of its model.
inline bool is_assistant(const std::string& draft) {
  return draft.starts_with("assistant-");
}
// Whether `draft` is a block that reads features of `model`: its own for multi-token prediction, EAGLE-3's, an assistant.
inline bool is_draft_block(const std::string& draft, const std::string& model) {
  return is_assistant(draft) || draft.starts_with("eagle3-") || (draft == model && model.contains("_mtp"));
}
// Sets what Model::open() sets if is_draft_block().
inline void use_draft_block(const std::string& draft, const std::string& model, ExecutorOptions& of_draft,
                            ExecutorOptions& of_model) {
  of_draft.part = ModelPart::kDraftBlock;
  of_draft.gives_features = false;
  of_draft.feature_layers.clear();
  of_model.gives_features = true;
  if (draft == model) return;
  of_draft.lender = model_path(model);
  const auto weights = Weights::open(model_path(draft)).value();
  of_model.feature_layers = read_config(weights.metadata(), weights.infos()).value().target_layers;
}

// A replica on each of options.devices; all have the probe. Throws where the model or the engine does not open, with
// the reason: its test fails by name, and the next one begins.
inline TestEngine start_engine(const std::string& model, ExecutorOptions executor_options,
                               const EngineOptions& options = {}, std::shared_ptr<Probe> probe = {},
                               Opener opener = open_on_ring, Drive drive = Drive::kThreads,
                               std::optional<TestDraft> draft = {}) {
  if (!probe) probe = std::make_shared<Probe>();
  std::vector<std::unique_ptr<Executor>> executors, drafts;
  for (const std::uint32_t device : options.devices) {
    executor_options.device = device;
    executors.push_back(std::make_unique<ProbeExecutor>(opener(model, executor_options), probe));
    if (!draft) continue;
    draft->options.device = device;
    draft->options.model = is_assistant(draft->model) ? executors.back().get() : nullptr;
    drafts.push_back(std::make_unique<ProbeExecutor>(opener(draft->model, draft->options), draft->probe));
  }
  auto made = Model::make(std::move(executors), options, std::move(drafts));
  if (!made) throw std::runtime_error(made.error().message);
  auto core = EngineCore::start(std::move(*made), drive);
  if (!core) throw std::runtime_error(core.error().message);
  return {std::move(probe), std::move(*core)};
}

inline Request token_request(std::vector<std::int32_t> ids, std::uint32_t max_tokens) {
  Request request;
  request.token_ids = std::move(ids);
  request.max_tokens = max_tokens;
  request.ignore_eos = true;
  request.return_logits_hash = true;
  return request;
}

// What holds when no request is under way: everything came back, and nobody saw a bug.
inline void expect_all_free(const TestEngine& engine) {
  const auto stats = engine.stats();
  EXPECT_EQ(stats["running"], 0);
  EXPECT_EQ(stats["waiting"], 0);
  EXPECT_EQ(stats["slots_free"], stats["slots"]);
  EXPECT_EQ(stats["pages_free"], stats["pages"]);
  EXPECT_EQ(stats["internal_errors"], 0);
}

// Waits for what another thread brings about; false when it has not in ten seconds.
template <class Condition>
bool eventually(Condition&& condition) {
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);;) {
    if (condition()) return true;
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

class EngineTest : public ::testing::Test {
 protected:
  void TearDown() override { gate_.open(); }

  // Each step is noted and passes gate_.
  TestEngine make(std::uint32_t slots, std::uint32_t kv_pages = 0, const EngineOptions& options = {},
                  std::uint32_t chunk_cap = 0) {
    auto executor_options = small_options();
    executor_options.chunk_cap = chunk_cap;
    executor_options.max_slots = slots;
    executor_options.kv_pages = kv_pages;
    auto probe = std::make_shared<Probe>();
    probe->before = [this](const StepInput& input, std::uint64_t) {
      {
        const std::lock_guard lock(mutex_);
        steps_.push_back({input.slots.begin(), input.slots.end()});
      }
      gate_.pass();
      return Status{};
    };
    return start_engine("llama_spm-f32", executor_options, options, std::move(probe));
  }
  std::vector<std::set<std::int32_t>> steps() {
    const std::lock_guard lock(mutex_);
    return steps_;
  }
  static TenantQuota quota(const std::string& qos, std::uint32_t slots = 4) {
    TenantQuota quota;
    quota.qos_class = qos;
    quota.max_concurrent_slots = slots;
    return quota;
  }
  static Completion read(Stream& stream) {
    for (;;) {
      const auto event = stream.next();
      EXPECT_TRUE(event) << event.error().message;
      if (!event || !*event) return stream.completion();
    }
  }

  Gate gate_;
  std::mutex mutex_;
  std::vector<std::set<std::int32_t>> steps_;
};

}  // namespace zinc_rt
