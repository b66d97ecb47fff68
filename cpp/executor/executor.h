// Executor runs the steps of one opened model on one device. The engine includes only this file and step.h, so it knows
// no graphs and no tiers. Each folder of executor/ implements one executor (kind.h); ring/ implements the one that
// lowers graphs for a tier.
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/arithmetic.h"
#include "base/kv_type.h"
#include "base/pooling.h"
#include "executor/memory_plan.h"
#include "executor/step.h"
#include "model/config.h"
#include "model/weights.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

class Executor;
class RingExecutor;

// Which part of a model file an executor runs.
enum class ModelPart {
  kModel,
  kDraftBlock,  // the block that guesses from a model's features (arch::Family::build_draft)
};

struct ExecutorOptions {
  std::string tier = "auto";
  std::string backend;           // "zinc_rt" or a peer's name (kind.h); empty: the tier decides
  std::uint32_t device = 0;      // the device's number within the tier
  std::uint32_t n_replicas = 1;  // replicas of the model in this process; they share the host's memory
  std::uint32_t max_slots = 16;
  // 0: pages for max_slots full contexts, limited by a part of memory (kv_part) and by what is free.
  std::uint32_t kv_pages = 0;
  std::uint32_t kv_part = 4;      // if kv_pages is 0, the pages take at most 1 / kv_part of memory
  std::uint32_t max_context = 0;  // tokens that a slot can hold; 0: the model's context length, at most 32768
  const KvType* kv_type = find_kv_type("f16");  // null: choose_kv_type() decides (sizes.h)
  std::optional<Pooling> pooling;               // empty: the pooling in the model file (choose_pooling, sizes.h)
  int threads = 0;                              // T-CPU: threads that compute; 0: as many as the process may use
  // T-CPU: name of the kernel set to use; empty: the fastest that the processor can run.
  std::string cpu_kernels;
  std::uint32_t state_checkpoints = 0;  // copies of slots' recurrent state that can be kept (mem/prefix_cache.h)
  // For models with recurrent state: the most guessed tokens of a slot in a step. Their inputs to recurrent layers are
  // saved, twice this number per slot. 0: steps have no guessed tokens.
  std::uint32_t state_guesses = 0;
  ModelPart part = ModelPart::kModel;
  bool gives_features = false;                // whether steps call StepInput::on_features; they then never run ahead
  std::vector<std::uint32_t> feature_layers;  // of which features are given (arch::GraphOptions)
  // A file that lends its embeddings and output matrix to a draft block whose file has none; empty: none.
  std::string lender;
  // The executor of the model for which a draft block guesses, if the block reads its KV pages. Steps then have the page
  // tables of the model, and run when no step of the model does. It must outlive the block's executor. Null: none.
  Executor* model = nullptr;
  Activations activations = Activations::kInt8;
  Arithmetic arithmetic = Arithmetic::kExact;
  std::uint32_t chunk_cap = 0;  // the most query tokens per step; 0: the tier's default
  std::string fusion = "1";     // which nodes are fused, as text for lower::parse_fusion(); "1": all
  // Whether a step may begin before the step before it has ended, on tiers that can do that (ExecutorInfo::runs_ahead).
  bool run_ahead = true;
  bool aliasing = true;  // whether activations may share memory
  // If true, weights are converted to the layout that the tier's kernels prefer, if there is one.
  bool repack = true;
  // If weights are not repacked: true reads them in the mapped file, on tiers that can do that; false copies them.
  bool mmap = true;
  // The file to which all calls are recorded (step_log.h); empty: none. open_executor() appends ".2", ".3" ... for the
  // second and later models that the process opens with a step log. step_log_logits: the logits of all output rows are
  // read and hashed, not only those that the caller wants.
  std::string step_log;
  bool step_log_logits = false;
  std::function<void(std::uint64_t done, std::uint64_t total)> on_progress;  // bytes of weights that are loaded
};

// What a draft block reads in a row of StepInput::features, which has `width` values: in the first of_model of them the
// features of its model, or from own_at on its own features (ExecutorInfo::feature_dim). All others are 0.
struct FeatureInput {
  std::uint32_t width = 0;  // 0: the executor reads no features
  std::uint32_t of_model = 0, own_at = 0;
};

struct ExecutorInfo {
  std::string family;  // for display, such as "Qwen 3"
  std::string tier;    // such as "t_cpu"
  std::string device;  // for display
  // kFast only if the options asked for it and the tier has such kernels on this device.
  Arithmetic arithmetic = Arithmetic::kExact;
  Activations activations = Activations::kInt8;
  std::string fusion;
  std::string kv_dtype;  // such as "f16"
  // kNone: for each output row a token is picked. Otherwise each output row returns an embedding and no token is
  // picked. For kCls and kRank the output row of a text is the row of its first token, else the row of its last token.
  Pooling pooling = Pooling::kNone;
  std::uint32_t embedding_dim = 0;  // width of an output row's embedding; 1 for kRank, whose result is a score
  // True if all tokens of a text attend to each other. Then a text must be passed whole, in one step, from position 0
  // on, and none of its prefixes can be cached.
  bool needs_whole_texts = false;
  // Whether output rows may have n_logprobs. If not, the caller computes logprobs from the rows' logits.
  bool has_logprobs = false;
  std::uint32_t max_slots = 0, max_context = 0, n_pages = 0, chunk_cap = 0;
  std::uint64_t page_bytes = 0, kv_bytes_per_token = 0;
  bool runs_ahead = false;  // begin() accepts a step while another one runs
  std::uint32_t n_state_checkpoints = 0;
  std::uint64_t state_bytes_per_slot = 0;  // bytes of recurrent state; 0 if the model has none
  // For models with recurrent state: the most guessed tokens of a slot in a step (StateRun). 0: guesses are refused.
  std::uint32_t state_guesses = 0;
  std::uint32_t feature_dim = 0;  // width of a token's features, which steps pass to on_features; 0: there are none
  FeatureInput reads = {};
  bool reads_model_pages = false;  // it has no KV pages, and reads those of ExecutorOptions::model
  // The text lengths at which the RoPE variant changes, ascending. Texts of up to rope_limits[i] tokens use variant i.
  // Texts longer than the last limit use the variant after it. Empty: all texts use one variant.
  std::vector<std::uint32_t> rope_limits;
  // n_host_expert_layers counts the layers whose experts are in host memory because the device has too little memory.
  // host_expert_bytes is the size of these experts. Both are 0 if there are none.
  std::uint32_t n_host_expert_layers = 0;
  std::uint64_t host_expert_bytes = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual const ExecutorInfo& info() const = 0;
  virtual const ModelConfig& config() const = 0;
  virtual const Weights& weights() const = 0;
  virtual const MemoryPlan& plan() const = 0;
  // Returns what runs the steps on a ring, whose KV pages a draft block can read; null if nothing does.
  virtual RingExecutor* ring_executor() { return nullptr; }
  virtual std::uint64_t allocated_bytes() const = 0;  // memory that the tier holds; equals plan().allocated_bytes()

  // A step takes two calls. begin() checks the input and starts what the device can run without the caller. finish()
  // calls StepInput's functions, waits for the device and sets `output`. Between the two, the caller makes no other
  // call and leaves `input` and the memory of its views unchanged. Nothing is allocated once input and output have
  // grown to their size. Errors of begin(): kInvalidArgument with the value and the limit if the input is outside the
  // limits of info() (step_check.h); finish() must then not be called. Errors of finish(): what failed in the step; the
  // step is then over.
  // If info().runs_ahead, begin() may be called for one more step before finish(), with another StepInput that fits
  // can_run_ahead() (step.h). Then finish() ends the steps in the order in which they began.
  virtual Status begin(const StepInput& input) = 0;
  virtual Status finish(StepOutput& output) = 0;
  // Calls begin() and finish(), for callers that have nothing to do in between.
  Status step(const StepInput& input, StepOutput& output) {
    output.tokens.clear();
    if (auto status = begin(input); !status) return status;
    return finish(output);
  }
  // Copies the recurrent state of slots to checkpoints or back, between two steps. All pairs (from, to) are copied at
  // once. So the entry that a pair writes, its `to`, may occur in no other pair. For models without recurrent state the
  // call does nothing. Errors: kInvalidArgument if an entry does not exist, or if the `to` of a pair also occurs in
  // another pair.
  virtual Status copy_state(std::span<const StateCopy> copies) = 0;
  // Copies whole KV pages, between two steps. The rules for pairs and the errors are those of copy_state().
  virtual Status copy_pages(std::span<const PageCopy> copies) = 0;
  // Copy whole KV pages to and from host memory, info().page_bytes each, between two steps. Only an executor with the
  // same tier, model and kv_dtype can use the bytes. Errors: kInvalidArgument if a page does not exist or the number of
  // bytes is wrong; kUnavailable if the executor has no such pages.
  virtual Status read_pages(std::span<const std::uint32_t>, std::span<std::byte>) { return no_page_copies(); }
  virtual Status write_pages(std::span<const std::uint32_t>, std::span<const std::byte>) { return no_page_copies(); }
  // Returns the variant of the RoPE tables for a text of n_tokens (StepInput::rope_variants).
  virtual std::uint32_t rope_variant(std::uint64_t n_tokens) const = 0;
  // Runs the layers up to and including `layer` (-1: only the embedding) and returns the residual stream, [n tokens,
  // model_dim]. Errors: those of a step; kUnavailable if the executor cannot return the stream.
  virtual Result<std::vector<float>> hidden(const StepInput& input, int layer) = 0;

 private:
  Status no_page_copies() const {
    return std::unexpected(
        Error{StatusCode::kUnavailable, "[executor] tier " + info().tier + " gives no KV pages to the host", 0});
  }
};

// Opens a model file on the tier that options.tier names, with that tier's executor (registry.h). Error messages name
// the file, tensor, key or tier. The message of kExhausted says what would fit.
Result<std::unique_ptr<Executor>> open_executor(const std::string& path, const ExecutorOptions& options);

}  // namespace zinc_rt
