// The log: spdlog on stderr, level by ZINC_RT_LOG. Never on a thread that runs kernels.
#pragma once

#include <spdlog/spdlog.h>

namespace zinc_rt {

// The project's logger. Thread rule: any thread.
spdlog::logger& log();

}  // namespace zinc_rt
