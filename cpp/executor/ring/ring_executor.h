// RingExecutor runs a model on a tier that has a ring (a queue of kernel packets). When a model is opened, it builds
// and lowers one graph per stage. A step then only fills the step descriptor and submits the prepared packets.
// Thread rule: one thread at a time, as for Executor.
#pragma once

#include "executor/executor.h"
#include "executor/ring/prepare.h"
#include "executor/step_check.h"
#include "kernels/common/logprobs.h"
#include "kernels/common/sample_params.h"
#include "kernels/common/state_run.h"
#include "lower/lower.h"
#include "ring/registry.h"

namespace zinc_rt {

class RingExecutor final : public Executor {
 public:
  // Opens a model file. options.tier is the name of a tier in ring/registry.h. Errors: those of open_executor().
  static Result<std::unique_ptr<RingExecutor>> open(const std::string& path, const ExecutorOptions& options);
  ~RingExecutor() override;

  const ExecutorInfo& info() const override { return info_; }
  const ModelConfig& config() const override { return prepared_.config; }
  const Weights& weights() const override { return *prepared_.weights; }
  const MemoryPlan& plan() const override { return prepared_.layout.plan; }
  RingExecutor* ring_executor() override { return this; }
  std::uint64_t allocated_bytes() const override { return ring_->stats().allocated_bytes; }
  Status begin(const StepInput& input) override;
  Status finish(StepOutput& output) override;
  Status copy_state(std::span<const StateCopy> copies) override;
  Status copy_pages(std::span<const PageCopy> copies) override;
  Status read_pages(std::span<const std::uint32_t> pages, std::span<std::byte> to) override;
  Status write_pages(std::span<const std::uint32_t> pages, std::span<const std::byte> from) override;
  std::uint32_t rope_variant(std::uint64_t n_tokens) const override;
  Result<std::vector<float>> hidden(const StepInput& input, int layer) override;

  const Prepared& prepared() const { return prepared_; }
  const ring::PacketBatch& batch(ir::Stage stage) const { return stage == ir::Stage::kDecode ? decode_ : prefill_; }
  ring::Ring& ring() { return *ring_; }

 private:
  RingExecutor() = default;
  Status allocate_regions();
  Status import_pages(RingExecutor& model);
  Status load_weights(const ExecutorOptions& options, bool mapped);
  Status fill_constants();
  Status lower_graphs();
  Result<lower::Location> locate(const ir::Graph& graph, const lower::ActivationMap& activations,
                                 ir::BufferId id) const;
  // Returns a span through which the host reads and writes a buffer.
  Result<std::span<std::byte>> host_view(const std::string& name) const;
  Status bind_views();

  struct Views;
  void fill_body(const StepInput& input, const Views& views);
  void fill_runs(const StepInput& input, StateRun* runs);
  static void fill_outputs(const StepInput& input, std::size_t first, std::size_t count, const Views& views);
  Status run(const ring::PacketBatch& batch, std::uint32_t first, std::uint32_t count, ring::StepDims dims);
  Status wait(ring::Fence fence);
  // Copies floats from a region of the plan to the host. The result is valid until the next step.
  Result<std::span<const float>> read_floats(std::string_view region, std::uint64_t offset, std::uint64_t count);
  struct Begun;
  // Submits the packets from number `from` on: what is left of the body, and the packets that compute the group of
  // output rows that begins with row `first`. If a row of the group has a mask or a processor, stops before SAMPLE.
  Status begin_group(Begun& begun, std::size_t first, std::uint32_t from);
  // Whether a step with this input may begin now, although another one runs.
  Status check_ahead(const StepInput& input) const;
  Status finish_step(Begun& begun, StepOutput& output);
  Status finish_embeddings(const Begun& begun);
  // Passes the step's features to StepInput::on_features. REQUIRES: the body has run.
  Status give_features(const StepInput& input);
  Status finish_picks(const Begun& begun, StepOutput& output);
  Status read_logits(const StepInput& input, std::size_t first, std::size_t count);
  // Passes the rows of a group that want logprobs to StepInput::on_logprobs.
  void give_logprobs(const Begun& begun);
  // Calls StepInput::mask for the masked rows of a group and copies the masks to the device's buffer. Only SAMPLE reads
  // masks, so the packets before SAMPLE run meanwhile.
  Status fill_masks(const Begun& begun);
  // Calls StepInput::process for the processed rows of a group. Saves their logits first, so that restore_rows() can
  // restore them.
  Status process_rows(const StepInput& input, std::size_t first, std::size_t count);
  Status restore_rows(const StepInput& input, std::size_t first, std::size_t count);
  Status drain_tokens(std::size_t count, std::vector<std::int32_t>& tokens);
  Status check_pages(std::span<const std::uint32_t> pages, std::size_t n_bytes) const;
  template <class Copy>
  Status copy_entries(const ring::PacketBatch& batch, std::span<const Copy> copies);

  // Pointers to the buffers that the host writes and reads in each step. open() sets them once, for each set of
  // operands. They stay valid as long as the buffers exist.
  struct Views {
    std::int32_t *token_ids = nullptr, *positions = nullptr, *slots = nullptr, *page_table = nullptr;
    std::int32_t* rope_positions = nullptr;  // null: RoPE reads `positions`
    std::int32_t* text_ends = nullptr;       // null: attention is causal
    std::int32_t* token_types = nullptr;     // null: the model has no token types
    StateRun* state_runs = nullptr;          // null: the model has no recurrent state
    float* features = nullptr;               // null: the graph reads no features
    std::int32_t* output_rows = nullptr;
    // Null for models with pooling, which pick no tokens.
    std::int32_t *output_slots = nullptr, *history = nullptr;
    std::uint32_t *bias = nullptr, *mask = nullptr;  // bias: pairs (token id, float)
    SampleParams* sampling = nullptr;
    std::int32_t *copy_from = nullptr, *copy_to = nullptr;  // null: the model has neither state nor pages to copy
    const std::uint32_t* tokens = nullptr;                  // the output ring
    // Null for tiers that compute no logprobs.
    LogprobParams* wanted_logprobs = nullptr;
    const LogprobStats* logprobs = nullptr;
  };

  // Begun records what begin() and begin_group() have submitted of a step, for finish().
  struct Begun {
    const StepInput* input = nullptr;
    std::uint32_t operand_set = 0;
    const ring::PacketBatch* batch = nullptr;
    ring::StepDims dims{};
    std::size_t first = 0;  // the group's first output row
    std::uint32_t count = 0;
    std::uint32_t next = 0;  // number of the first packet that was not submitted yet
    std::uint32_t end = 0;   // number of the packet behind the group's last; behind all packets, or before LOGPROBS
    bool is_processed = false;
    ring::Fence fence{};
  };

  Prepared prepared_;
  ExecutorInfo info_;
  std::unique_ptr<ring::Ring> ring_;
  std::unordered_map<std::string, ring::Buffer> regions_;
  std::unordered_map<std::string, lower::Location> weight_locations_;  // key: buffer name
  ring::PacketBatch prefill_, decode_, state_copy_, page_copy_;
  Views views_[2];  // index: set of operands; the second is used only if info_.runs_ahead
  StepCheck check_;
  // The steps that have begun and not ended, at most two: the first is begun_[first_begun_].
  Begun begun_[2];
  std::uint32_t first_begun_ = 0, n_begun_ = 0;
  bool has_mapped_weights_ = false;  // true if kernels read weights in the mapped file
  std::uint32_t n_rope_variants_ = 1;
  std::vector<float> row_, unprocessed_;  // scratch: one row, and the rows of a group
  std::vector<RowLogprobs> logprobs_;     // scratch of give_logprobs()
  // Index: slot; StateRun::half of its next step. Empty: the model has no recurrent state.
  std::vector<std::uint32_t> saved_half_;
  std::uint32_t drained_ = 0;  // number of entries of the output ring that were read so far
};

}  // namespace zinc_rt
