// What the arch and lowering make of a model before any device is touched; `zinc-rt plan` and `zinc-rt ir` show it.
// Thread rule: plain values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "arch/family.h"
#include "executor/executor.h"
#include "executor/layout.h"
#include "ir/graph.h"

namespace zinc_rt {

struct DeviceBudget;

struct Prepared {
  std::unique_ptr<Weights> weights;
  ModelConfig config;
  const arch::Family* family = nullptr;
  arch::GraphOptions graph_options;
  lower::StepLimits limits;
  ir::Graph prefill, decode;          // as the family wrote them
  ir::Graph prefill_low, decode_low;  // fused and quantized
  ir::Graph state_copy;               // a STATE_COPY for each recurrent state; no nodes where the model has none
  ir::Graph page_copy;                // a STATE_COPY over whole KV pages; no nodes where the model has none
  Layout layout;

  // Those that run, in the order of Layout::activations.
  std::vector<const ir::Graph*> run_graphs() const { return {&prefill_low, &decode_low, &state_copy, &page_copy}; }
};

// weights_mapped: whether the tier uses the mapped file. budget: null where the device's memory is the host's.
Result<Prepared> prepare(const std::string& path, const ExecutorOptions& options, bool weights_mapped = true,
                         const DeviceBudget* budget = nullptr);

// The sizes, graphs and layout of an open model (weights, config and family are there) for other options, with one KV
// page and no copy of pages.
Status shape(Prepared& prepared, const ExecutorOptions& options, bool weights_mapped);

}  // namespace zinc_rt
