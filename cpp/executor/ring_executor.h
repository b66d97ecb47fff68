// The executor over a ring: builds and lowers one graph a stage when it is opened; a step then only fills the step
// descriptor and submits.
#pragma once

#include "arch/family.h"
#include "executor/executor.h"
#include "executor/layout.h"
#include "ir/graph.h"
#include "lower/lower.h"
#include "ring/registry.h"

namespace zinc_rt {

// What the arch and lowering make of a model before any device is touched; `zinc-rt plan` and `zinc-rt ir` show it.
struct Prepared {
  std::unique_ptr<Weights> weights;
  ModelConfig config;
  const arch::Family* family = nullptr;
  arch::GraphOptions graph_options;
  lower::StepLimits limits;
  ir::Graph prefill, decode;          // as the family wrote them
  ir::Graph prefill_low, decode_low;  // fused and quantized
  ir::Graph state_copy;               // a STATE_COPY for each recurrent state; no nodes where the model has none
  Layout layout;
};
// weights_mapped: whether the tier uses the mapped file.
Result<Prepared> prepare(const std::string& path, const ExecutorOptions& options, bool weights_mapped = true);

class RingExecutor final : public Executor {
 public:
  static Result<std::unique_ptr<RingExecutor>> open(const std::string& path, const ExecutorOptions& options);
  ~RingExecutor() override;

  const ExecutorInfo& info() const override { return info_; }
  const ModelConfig& config() const override { return prepared_.config; }
  const Weights& weights() const override { return *prepared_.weights; }
  const mem::MemoryPlan& plan() const override { return prepared_.layout.plan; }
  std::uint64_t allocated_bytes() const override { return ring_->stats().allocated_bytes; }
  Result<StepOutput> step(const StepInput& input) override;
  Status copy_state(std::span<const StateCopy> copies) override;
  std::uint32_t rope_variant(std::uint64_t n_tokens) const override;
  Result<std::vector<float>> hidden(const StepInput& input, int layer) override;

  const Prepared& prepared() const { return prepared_; }
  const ring::PacketBatch& batch(ir::Stage stage) const { return stage == ir::Stage::kDecode ? decode_ : prefill_; }
  ring::Ring& ring() { return *ring_; }

 private:
  RingExecutor() = default;
  Status allocate(const ExecutorOptions& options);
  Status load_weights(const ExecutorOptions& options, bool mapped);
  Status fill_constants();
  Result<lower::Location> locate(const ir::Graph& graph, const lower::ActivationMap& activations,
                                 ir::BufferId id) const;
  Status check(const StepInput& input) const;
  Status fill_body(const StepInput& input);
  Status fill_outputs(const StepInput& input, std::size_t first, std::size_t count);
  Status run(const ring::PacketBatch& batch, std::uint32_t first, std::uint32_t count, ring::StepDims dims);
  Status drain_tokens(std::size_t count, std::vector<std::int32_t>& tokens);
  // The host's view of a buffer by its name.
  Result<std::span<std::byte>> host_view(const std::string& name) const;
  template <class T>
  Result<T*> request(const std::string& name) const;

  Prepared prepared_;
  ExecutorInfo info_;
  std::unique_ptr<ring::Ring> ring_;
  std::unordered_map<std::string, ring::Buffer> regions_;
  std::unordered_map<std::string, lower::Location> weight_locations_;  // by buffer name
  ring::PacketBatch prefill_, decode_, state_copy_;
  std::uint32_t n_rope_variants_ = 1;
  std::uint32_t drained_ = 0;  // entries of the output ring that were read
};

}  // namespace zinc_rt
