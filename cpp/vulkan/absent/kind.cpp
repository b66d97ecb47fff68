// Takes the place of the executor in builds without it, so that a user who names it gets an error with the reason.
#include "executor/kind.h"

namespace zinc_rt {

extern const ExecutorKind kExecutor_vulkan;
const ExecutorKind kExecutor_vulkan{
    .name = "vulkan",
    .description = "not in this build: " ZRT_VULKAN_WHY_ABSENT,
    .backend = "vulkan",
    .tiers = [] { return std::vector<ExecutorTier>(); },
    .open = nullptr,
    .left_out = [] { return std::vector<LeftOutExecutorTier>{{"vulkan", ZRT_VULKAN_WHY_ABSENT}}; }};

}  // namespace zinc_rt
