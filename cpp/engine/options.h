// What EngineOptions and the environment variables ask for together: an option that is given
// takes precedence over its variable.
// Thread rule: pure functions of the options and the environment.
#pragma once

#include "engine/model.h"
#include "executor/executor.h"

namespace zinc_rt {

// The number of worker threads; 0: what the process may use. Errors of all: kInvalidArgument for a value out of its
// limits.
Result<int> chosen_threads(const EngineOptions& options);
Result<ExecutorOptions> executor_options(const EngineOptions& options);
// The same for each of options.devices, which share the threads. Errors also for no device and for one that is named
// twice; whether a tier has it open_executor says.
Result<std::vector<ExecutorOptions>> replica_options(const EngineOptions& options);
Result<PrefillMode> parse_prefill_mode();  // ZINC_RT_BATCHED_PREFILL

}  // namespace zinc_rt
