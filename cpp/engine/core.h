// The engine behind its handles: the executor and all that is shared by the requests of one model.
// Thread rule: `mutex` guards everything below it; the tokenizer and the template are immutable.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>

#include "engine/accounting.h"
#include "executor/executor.h"
#include "mem/page_pool.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"
#include "zinc_rt/engine.h"

namespace zinc_rt {

struct TenantState {
  std::string name;
  mutable std::mutex mutex;
  TenantQuota quota;
  Accounting accounting;
  std::uint32_t slots_in_use = 0;
  std::uint32_t pages_in_use = 0;
};

enum class PrefillMode : std::uint8_t { kBatched, kTokenByToken, kValidate };

class EngineCore {
 public:
  static Result<std::shared_ptr<EngineCore>> open(const std::string& model, const EngineOptions& options);

  Result<std::string> render(std::string_view messages, std::string_view tools, bool add_generation_prompt,
                             std::string_view extra) const;

  // A slot with pages for n_tokens, to run a request or a diff in.
  struct Lease {
    std::uint32_t slot = 0;
    std::vector<std::uint32_t> pages;
    std::uint32_t rope_variant = 0;  // that its keys were written with
  };
  Result<Lease> lease(std::uint64_t n_tokens);
  // The variant of the RoPE tables for the last of n_tokens (arch::Family::rope_variant).
  Result<std::uint32_t> rope_variant(std::uint64_t n_tokens);
  void give_back(const Lease& lease);

  // Runs tokens [begin, begin + n) of `ids` in the lease; `rows` picks output rows (index within the step).
  Result<StepOutput> step(const Lease& lease, std::span<const std::int32_t> ids, std::size_t begin, std::size_t n,
                          std::vector<OutputRow> outputs,
                          std::function<void(std::uint32_t, std::span<const float>)> on_logits = {});
  Result<std::vector<float>> logits(std::span<const std::int32_t> ids, LogitsRows rows, std::uint32_t chunk);
  Result<std::vector<float>> hidden(std::span<const std::int32_t> ids, int layer);
  Result<std::shared_ptr<TenantState>> tenant(const std::string& name, const std::optional<TenantQuota>& quota);

  void close();
  bool is_closed() const { return closed_.load(); }
  Status check_open() const;

  const ExecutorInfo& info() const { return info_; }
  const ModelConfig& config() const { return config_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const std::string& arithmetic() const { return arithmetic_; }
  PrefillMode prefill_mode() const { return prefill_mode_; }
  std::string model_card() const { return model_card_; }
  std::string memory_plan() const { return memory_plan_; }
  std::string stats();

  std::atomic<std::uint64_t> steps{0}, step_tokens{0};
  std::atomic<float> largest_prefill_difference{0};  // seen by ZINC_RT_BATCHED_PREFILL=validate

 private:
  // Positions [begin, end) that share a variant.
  struct Span {
    std::size_t begin = 0, end = 0;
    std::uint32_t variant = 0;
  };
  Result<std::vector<Span>> variant_spans(std::size_t n_tokens);
  // A step's input with the memory that its views of pages and variants need: made in place, never copied.
  struct LeaseStep {
    LeaseStep(const Lease& lease, std::span<const std::int32_t> ids, std::size_t begin, std::size_t n);
    LeaseStep(const LeaseStep&) = delete;
    std::vector<std::uint32_t> pages, counts, variants;
    StepInput input;
  };

  ExecutorInfo info_;
  ModelConfig config_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> template_;
  Error template_error_;
  std::string arithmetic_, model_card_, memory_plan_;
  PrefillMode prefill_mode_ = PrefillMode::kBatched;
  std::atomic<bool> closed_{false};

  std::mutex mutex_;
  std::unique_ptr<Executor> executor_;  // null once closed
  std::optional<mem::PagePool> pages_;
  std::vector<std::uint32_t> free_slots_;
  std::map<std::string, std::shared_ptr<TenantState>> tenants_;
};

}  // namespace zinc_rt
