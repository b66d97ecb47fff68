// Runs a model's steps. The engine knows this and step.h; how it is done lies in ring_executor.
// Thread rule: one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/memory_plan.h"
#include "executor/step.h"
#include "model/config.h"
#include "model/weights.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

struct ExecutorOptions {
  std::string tier = "auto";
  std::uint32_t max_slots = 16;
  std::uint32_t kv_pages = 0;           // 0: max_slots full contexts, at most a quarter of memory and what is free
  std::uint32_t max_context = 0;        // tokens a slot can hold; 0: the model's, at most 32768
  std::string kv_dtype = "f16";         // f16, f32 or q8_0
  int threads = 0;                      // T-CPU; 0: what the process may use
  std::string cpu_kernels;              // T-CPU; ring/tier.h
  std::uint32_t state_checkpoints = 0;  // entries for copies of slots' recurrent state
  std::string activations =
      "int8";  // int8, or f32: no activation is quantized (a debugging mode of the reference kernels)
  std::string arithmetic = "exact";  // or fast: a tier may sum up in any order and round to 16 bits, where it gains
  std::uint32_t chunk_cap = 0;       // most query tokens a step; 0: the tier's default
  std::string fusion = "1";          // lower::parse_fusion
  bool aliasing = true;              // activations share memory where they can
  bool repack = true;                // weights in the form that the tier's kernels like best, where it has one
  bool mmap = true;  // else use weights where the file is mapped, on tiers that can; false: copy them to buffer objects
  std::function<void(std::uint64_t done, std::uint64_t total)> on_progress;  // bytes of weights made ready
};

struct ExecutorInfo {
  std::string family;      // of the model, for people: "Qwen 3"
  std::string tier;        // "t_cpu"
  std::string device;      // of the ring, for people
  std::string arithmetic;  // "fast" where the tier has kernels for it here and was asked for it, else "exact"
  std::string activations, fusion;
  std::string kv_dtype;  // "f16"
  std::uint32_t max_slots = 0, max_context = 0, n_pages = 0, chunk_cap = 0;
  std::uint64_t page_bytes = 0, kv_bytes_per_token = 0;
  std::uint32_t n_state_checkpoints = 0;
  std::uint64_t state_bytes_per_slot = 0;  // recurrent state; 0: the model has none
  // Where the RoPE variant changes, ascending: texts of up to rope_limits[i] tokens use variant i, longer ones than the
  // last the next variant. Empty: one variant for all that fits the context.
  std::vector<std::uint32_t> rope_limits;
  // Layers whose experts lie in host memory because the device's own is too small, and their bytes; 0: none.
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
  virtual std::uint64_t allocated_bytes() const = 0;  // what the tier really holds; equals plan().allocated_bytes()

  // Runs a step and sets `output`; allocates nothing once input and output have grown to their size. Errors:
  // kInvalidArgument for an input outside the limits of info(), with both numbers; nothing has run then.
  virtual Status step(const StepInput& input, StepOutput& output) = 0;
  // Saves slots' recurrent state in checkpoints, or puts it back; all pairs at once, after the step before and before
  // the step after. Nothing to do for models without such state. Errors: kInvalidArgument for an entry that does not
  // exist or an entry that is written and named again.
  virtual Status copy_state(std::span<const StateCopy> copies) = 0;
  // Copies KV pages whole, all pairs at once, after the step before and before the step after. Nothing to do for models
  // without such pages. Errors: kInvalidArgument for a page that does not exist or is written and named again.
  virtual Status copy_pages(std::span<const PageCopy> copies) = 0;
  // The variant of the RoPE tables for the last of n_tokens (StepInput::rope_variants).
  virtual std::uint32_t rope_variant(std::uint64_t n_tokens) const = 0;
  // Runs the layers up to and with `layer` (-1: the embedding alone) and gives the residual stream, [n tokens,
  // model_dim].
  virtual Result<std::vector<float>> hidden(const StepInput& input, int layer) = 0;
};

// Opens a model file on a tier. Errors name the file, tensor, key or tier; kExhausted says what would fit.
Result<std::unique_ptr<Executor>> open_executor(const std::string& path, const ExecutorOptions& options);

}  // namespace zinc_rt
