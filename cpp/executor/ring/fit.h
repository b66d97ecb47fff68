// Fits a plan to a device with its own memory: chooses the number of KV pages, and the layer from which the experts are
// in host memory. Integers only; nothing is allocated. Thread rule: pure functions.
#pragma once

#include <functional>

#include "executor/executor.h"
#include "executor/ring/prepare.h"

namespace zinc_rt {

// The available memory in bytes.
struct DeviceBudget {
  std::uint64_t free = 0, total = 0;  // device memory, for regions of kDeviceLocal and kBar
  std::uint64_t host = 0;             // host memory, for experts
  // Returns Ring::scratch_bytes of the graphs.
  std::function<Result<std::uint64_t>(const Prepared&)> scratch_bytes;
};

struct Fit {
  std::uint32_t n_pages = 0;
  std::uint32_t first_host_layer = kNoHostLayer;
  std::uint64_t scratch_bytes = 0;
};

// The layout with these numbers. REQUIRES: `prepared` was shaped for `options` (prepare.h).
Layout layout_with(const Prepared& prepared, const ExecutorOptions& options, bool maps_weights, const Fit& fit);

// If not everything fits, KV pages that nobody asked for are dropped first, down to one context. Then experts move to
// host memory, layer by layer from the last one. REQUIRES: target.budget, and that `prepared` was shaped for `options`.
// Errors: kExhausted with what the plan needs, what is free, and which kv_pages, max_context or max_slots would fit;
// `prepared` then has other shapes.
Result<Fit> fit_device(Prepared& prepared, const ExecutorOptions& options, const Target& target);

}  // namespace zinc_rt
