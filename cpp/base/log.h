// The log: spdlog on stderr, at the level in the environment variable ZINC_RT_LOG. Threads that run kernels must not
// log.
#pragma once

#include <spdlog/spdlog.h>

namespace zinc_rt {

// The project's logger. Thread rule: any thread.
spdlog::logger& log();

}  // namespace zinc_rt
