// Combines EngineOptions and the environment. An option that is given wins over its variable.
// Thread rule: pure functions of the options and the environment.
#pragma once

#include "engine/model.h"
#include "executor/executor.h"

namespace zinc_rt {

// Sets the options that were left open from their environment variables. All functions here fail with kInvalidArgument if
// an option or a variable has a value that its row does not allow.
Result<EngineOptions> with_environment(EngineOptions options);
int threads_of(const EngineOptions& options);  // its threads; 0: what the process may use
Result<ExecutorOptions> executor_options(const EngineOptions& options);
// The options per entry of options.devices, which share the threads. Errors also: no device, or one that is named
// twice. open_executor checks that the tier has the device.
Result<std::vector<ExecutorOptions>> replica_options(const EngineOptions& options);
Result<PrefillMode> parse_prefill_mode();  // ZINC_RT_BATCHED_PREFILL

}  // namespace zinc_rt
