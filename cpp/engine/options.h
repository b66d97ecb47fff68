// Combines EngineOptions with environment variables. An option that is set takes precedence over its variable.
// Thread rule: pure functions of the options and the environment.
#pragma once

#include "engine/model.h"
#include "executor/executor.h"

namespace zinc_rt {

// Sets the options that the caller did not set from their environment variables. All functions here fail with
// kInvalidArgument if an option or a variable has a value that its row in engine_options.cpp does not allow.
Result<EngineOptions> with_environment(EngineOptions options);
// Returns the number of threads. If the option is 0, that is the number of processors that the process may use.
int threads_of(const EngineOptions& options);
Result<ExecutorOptions> executor_options(const EngineOptions& options);
// Returns the options for each entry of options.devices. The devices share the threads. Errors also: kInvalidArgument
// if no device is named or one is named twice. open_executor() checks that the tier has the device.
Result<std::vector<ExecutorOptions>> replica_options(const EngineOptions& options);
Result<PrefillMode> parse_prefill_mode();  // reads ZINC_RT_BATCHED_PREFILL

}  // namespace zinc_rt
