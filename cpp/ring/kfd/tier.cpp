#include "ring/tier.h"

#include "base/error.h"
#include "base/options.h"
#include "ring/amd/amd_ring.h"
#include "ring/amd/submit_paths.h"
#include "ring/kfd/cs_device.h"
#include "ring/kfd/kfd_device.h"

namespace zinc_rt::ring {
namespace {

// The paths that t1 tries, in this order. Queues that the process fills itself come first, because they need no system
// call per step.
constexpr SubmitPath kPaths[] = {{"pm4", "PM4 through KFD", [] { return KfdDevice::make(kfd::kQueuePm4); }},
                                 {"aql", "PM4 in AQL through KFD", [] { return KfdDevice::make(kfd::kQueueAql); }},
                                 {"cs", "AMDGPU_CS", CsDevice::make}};

std::string unavailable_reason() {
  const auto connection = KfdConnection::open();
  const auto target =
      connection ? kfd::target_of((*connection)->node()) : Result<kernel::Target>(std::unexpected(connection.error()));
  if (target) return {};
  const auto drm = DrmConnection::open("t1");
  return drm ? std::string() : fmt::format("{}; {}", target.error().message, drm.error().message);
}

constexpr Diagnostics kDiagnostics{
    .check = []() -> std::vector<DeviceCheck> {
      const auto paths = wanted_paths(kPaths);
      return paths ? check_paths(*paths, amd_images())
                   : std::vector<DeviceCheck>{{{}, "ZINC_RT_AMD_PATH", paths.error().message, 0}};
    },
    .replay = [](std::span<const std::byte> log) -> Result<std::vector<DeviceCheck>> {
      ZRT_TRY(const auto paths, wanted_paths(kPaths));
      return replay_paths(paths, log);
    },
    .report = report_driver,
    .images = amd_images};

}  // namespace

extern const Tier kTier_t1;
// The tier is used only if the user names it: it has kernels for all families, but has not run on a card yet.
const Tier kTier_t1{.name = "t1",
                    .description = "AMD RDNA GPU, PM4 packets through the kernel's compute driver or AMDGPU_CS",
                    .priority = -1,
                    .unavailable_reason = unavailable_reason,
                    .make_ring = [](const RingOptions&) -> Result<std::unique_ptr<Ring>> {
                      ZRT_TRY(const auto limit, device_limit());
                      ZRT_TRY(const auto paths, wanted_paths(kPaths));
                      ZRT_TRY(auto proven, first_proven(paths, limit));
                      return AmdRing::make(std::move(proven), amd_images());
                    },
                    .details = [] { return describe_proofs(kPaths); },
                    .built_with = [] { return std::string(amd_code()); },
                    .diagnostics = &kDiagnostics};

}  // namespace zinc_rt::ring
