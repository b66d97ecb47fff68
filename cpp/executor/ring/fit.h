// Fits the memory of a model to a device with its own memory. It chooses the number of KV pages, and the layer from
// which the experts stay in host memory. RingExecutor::open uses it before anything is allocated. Thread rule: pure
// functions.
#pragma once

#include <functional>

#include "executor/executor.h"
#include "executor/ring/prepare.h"

namespace zinc_rt {

// DeviceBudget tells fit_device() how many bytes of memory may be used.
struct DeviceBudget {
  std::uint64_t free = 0, total = 0;  // device memory, for regions of kDeviceLocal and kBar
  std::uint64_t host = 0;             // host memory, for experts
  // Returns how much scratch memory the ring needs for these graphs (Ring::scratch_bytes).
  std::function<Result<std::uint64_t>(const Prepared&)> scratch_bytes;
};

struct Fit {
  std::uint32_t n_pages = 0;
  std::uint32_t first_host_layer = kNoHostLayer;
  std::uint64_t scratch_bytes = 0;
};

// Returns the layout with the numbers of `fit`. REQUIRES: `prepared` was shaped for `options` (prepare.h).
Layout layout_with(const Prepared& prepared, const ExecutorOptions& options, bool maps_weights, const Fit& fit);

// Chooses the numbers. If not everything fits, pages that the options did not ask for are dropped first, down to one
// context. Then experts move to host memory, layer by layer from the last one. REQUIRES: target.budget is set, and
// `prepared` was shaped for `options`. Errors: kExhausted with what the plan needs, what is free, and which kv_pages,
// max_context or max_slots would fit. After an error, `prepared` has other shapes.
Result<Fit> fit_device(Prepared& prepared, const ExecutorOptions& options, const Target& target);

}  // namespace zinc_rt
