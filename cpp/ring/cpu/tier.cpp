#include "ring/tier.h"

#include "ring/cpu/cpu_ring.h"

namespace zinc_rt::ring {

extern const Tier kTier_t_cpu;
const Tier kTier_t_cpu{"t_cpu", "host processor, reference kernels", 0, [] { return std::string(); },
                       [](const RingOptions& options) -> Result<std::unique_ptr<Ring>> {
                         return std::make_unique<CpuRing>(options.threads);
                       }};

}  // namespace zinc_rt::ring
