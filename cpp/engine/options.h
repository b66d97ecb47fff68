// Fills EngineOptions from environment variables, and derives the executors' options from them. An option that is set
// takes precedence over its variable.
// Thread rule: pure functions of the options and the environment.
#pragma once

#include <optional>

#include "base/speculate.h"
#include "engine/model.h"
#include "executor/executor.h"

namespace zinc_rt {

// Reads each option that the caller has not set from its environment variable. This function and replica_options() fail
// with kInvalidArgument if an option or a variable has a value that its row in engine_options.cpp does not allow.
Result<EngineOptions> with_environment(EngineOptions options);
// Returns how many threads the options allow. If the option is 0, these are all processors that the process may use.
int threads_of(const EngineOptions& options);
// Returns what EngineOptions::speculate means; nullopt if its value is unknown.
std::optional<Speculation> speculation_of(const EngineOptions& options);
Result<ExecutorOptions> executor_options(const EngineOptions& options);
// Returns the executor's options for each entry of options.devices. The replicas share the threads. Errors also:
// kInvalidArgument if options.devices is empty or names a device twice. Whether the tier has the device is checked by
// open_executor().
Result<std::vector<ExecutorOptions>> replica_options(const EngineOptions& options);
Result<PrefillMode> parse_prefill_mode();  // reads ZINC_RT_BATCHED_PREFILL

}  // namespace zinc_rt
