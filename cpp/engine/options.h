// What EngineOptions and the environment ask for together: an option that is given goes before its variable.
// Thread rule: pure functions of the options and the environment.
#pragma once

#include "engine/model.h"
#include "executor/executor.h"

namespace zinc_rt {

// Options that were left open get the values of their variables. Errors of all: kInvalidArgument for an option or a
// variable whose value its row does not allow.
Result<EngineOptions> with_environment(EngineOptions options);
int threads_of(const EngineOptions& options);  // its threads; 0: what the process may use
Result<ExecutorOptions> executor_options(const EngineOptions& options);
// The same for each of options.devices, which share the threads. Errors also for no device and for one that is named
// twice; whether a tier has it open_executor says.
Result<std::vector<ExecutorOptions>> replica_options(const EngineOptions& options);
Result<PrefillMode> parse_prefill_mode();  // ZINC_RT_BATCHED_PREFILL

}  // namespace zinc_rt
