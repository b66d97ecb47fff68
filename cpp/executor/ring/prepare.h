// What arch and lowering make from a model before any device is used. `zinc-rt plan` and `zinc-rt ir` show it.
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
  ir::Graph prefill, decode;          // as the family wrote them
  ir::Graph prefill_low, decode_low;  // fused and quantized
  ir::Graph state_copy;               // a COPY_ROWS for each recurrent state; without nodes if the model has none
  ir::Graph page_copy;                // a COPY_ROWS over whole KV pages; without nodes if the model has none
  // The matches of the tier's patterns, for each of run_graphs.
  std::vector<std::vector<lower::JoinedNodes>> joins;
  Layout layout;

  // The graphs that run, in the order of Layout::activations.
  std::vector<const ir::Graph*> run_graphs() const { return {&prefill_low, &decode_low, &state_copy, &page_copy}; }
};

// The properties of a tier that are needed before memory is laid out.
struct Target {
  bool maps_weights = true;                   // whether the tier reads weights in the mapped file
  const DeviceBudget* budget = nullptr;       // null: the tier computes in host memory
  std::span<const std::string_view> joins{};  // ring::Ring::joins
  // ring::Ring::kernels: ops without a kernel are not fused; null: every op has one.
  const kernel::KernelTable* kernels = nullptr;
  bool is_fast = false;            // ring::Ring::is_fast: arithmetic `fast` computes with floats
  std::string_view kv_dtype = {};  // the default type of the KV cache if no option names one; empty: i16
};
Result<Prepared> prepare(const std::string& path, const ExecutorOptions& options, const Target& target = {});

// Computes the sizes, graphs and layout again for other options, with one KV page and without the copy of pages.
// REQUIRES: weights, config and family.
Status shape(Prepared& prepared, const ExecutorOptions& options, const Target& target);

}  // namespace zinc_rt
