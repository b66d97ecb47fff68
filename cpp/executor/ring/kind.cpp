#include "executor/kind.h"

#include "executor/ring/ring_executor.h"
#include "ring/registry.h"

namespace zinc_rt {

extern const ExecutorKind kExecutor_ring;
const ExecutorKind kExecutor_ring{
    .name = "ring",
    .description = "lowers the model's graph to packets, which a ring of kernels runs",
    .tiers =
        [] {
          std::vector<ExecutorTier> list;
          for (const ring::Tier* tier : ring::tiers())
            list.push_back({tier->name, tier->description, tier->priority, tier->unavailable_reason, tier->n_devices,
                            tier->details, tier->built_with});
          return list;
        },
    .open = [](const std::string& path, const ExecutorOptions& options) -> Result<std::unique_ptr<Executor>> {
      auto executor = RingExecutor::open(path, options);
      if (!executor) return std::unexpected(std::move(executor.error()));
      return std::unique_ptr<Executor>(std::move(*executor));
    },
    .left_out =
        [] {
          std::vector<LeftOutExecutorTier> list;
          for (const ring::LeftOutTier& tier : ring::left_out_tiers())
            list.push_back({std::string(tier.name), std::string(tier.why)});
          return list;
        }};

}  // namespace zinc_rt
