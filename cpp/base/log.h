// Provides the project's log. It is written with spdlog to stderr, at the level in the environment variable
// ZINC_RT_LOG. Threads that run kernels must not log, because logging may block.
#pragma once

#include <spdlog/spdlog.h>

namespace zinc_rt {

// Returns the project's logger. Thread rule: any thread.
spdlog::logger& log();

}  // namespace zinc_rt
