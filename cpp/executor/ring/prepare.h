// Prepares a model before any device is used: reads the file's tables, builds the graphs and lays out the memory.
// RingExecutor::open continues from there; `zinc-rt plan` and `zinc-rt ir` print the result.
// Thread rule: plain values.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arch/family.h"
#include "executor/executor.h"
#include "executor/ring/layout.h"
#include "executor/sizes.h"
#include "ir/graph.h"
#include "kernel/kernel_table.h"
#include "lower/join.h"

namespace zinc_rt {

struct DeviceBudget;

struct Prepared {
  std::unique_ptr<Weights> weights;
  ModelConfig config;
  const arch::Family* family = nullptr;
  Sizes sizes;
  arch::GraphOptions graph_options;
  lower::StepLimits limits;
  ir::Graph prefill, decode;          // as the model family built them
  ir::Graph prefill_low, decode_low;  // the same after fusion and quantization
  ir::Graph state_copy;               // one COPY_ROWS per recurrent state; no nodes if the model has none
  ir::Graph page_copy;                // one COPY_ROWS over whole KV pages; no nodes if the model has none
  // joins[i] lists the groups of nodes in run_graphs()[i] that the tier runs as one packet, because they match its join
  // patterns (lower/join.h). shape() fills it.
  std::vector<std::vector<lower::JoinedNodes>> joins;
  Layout layout;
  const Prepared* model = nullptr;  // the model whose KV pages the graphs read (ExecutorOptions::model); null: none
  std::uint32_t logits_dim = 0;     // width of a row of logits; a draft block may have logits of some tokens alone

  // Returns the graphs that run, in the order of Layout::activations.
  std::vector<const ir::Graph*> run_graphs() const { return {&prefill_low, &decode_low, &state_copy, &page_copy}; }
};

// Returns the extent of the last dimension of a buffer, 0 if the graph has no such buffer.
std::uint32_t width_of(const ir::Graph& graph, std::string_view name);

// Target holds what must be known about a tier before memory is laid out.
struct Target {
  bool maps_weights = true;                   // whether kernels read weights in the mapped file
  const DeviceBudget* budget = nullptr;       // null: the tier computes in host memory
  std::span<const std::string_view> joins{};  // the tier's join patterns (lower/join.h); empty: no joins
  // The tier's kernels. Fusion creates no op for which the tier has no kernel. Null: every op has a kernel.
  const kernel::KernelTable* kernels = nullptr;
  bool has_operand_sets = false;    // the ring reads operands of two steps in turn (Ring::use_operand_sets)
  bool is_fast = false;             // true: the tier's kernels of arithmetic `fast` are used, which compute with floats
  std::string_view kv_dtype = {};   // the KV cache's type if no option names one; empty: i16
  bool has_logprobs = false;        // whether the tier computes logprobs (LOGPROBS)
  const Prepared* model = nullptr;  // Prepared::model
};
Result<Prepared> prepare(const std::string& path, const ExecutorOptions& options, const Target& target = {});

// Computes the sizes, graphs and layout again for other options. The result has one KV page and no graph that copies
// pages. REQUIRES: weights, config and family are set.
Status shape(Prepared& prepared, const ExecutorOptions& options, const Target& target);

}  // namespace zinc_rt
