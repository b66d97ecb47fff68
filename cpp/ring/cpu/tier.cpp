#include "ring/tier.h"

#include "base/error.h"
#include "ring/cpu/cpu_ring.h"
#include "ring/cpu/kernel_sets.h"

namespace zinc_rt::ring {

extern const Tier kTier_t_cpu;
const Tier kTier_t_cpu{.name = "t_cpu",
                       .description = "host processor",
                       .priority = 0,
                       .unavailable_reason = [] { return std::string(); },
                       .make_ring = [](const RingOptions& options) -> Result<std::unique_ptr<Ring>> {
                         ZRT_TRY(const auto* set, find_kernel_set(options.cpu_kernels));
                         const auto* fast = options.fast ? fast_form_of(*set) : nullptr;
                         return std::make_unique<CpuRing>(options.threads, fast != nullptr ? *fast : *set,
                                                          options.repack && set->reads_panels, fast != nullptr);
                       },
                       .n_devices = [] { return kHostDevices; },
                       .details = describe_kernel_sets,
                       .built_with = list_kernel_sets};

}  // namespace zinc_rt::ring
