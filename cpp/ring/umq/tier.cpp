#include "ring/tier.h"

#include "base/error.h"
#include "ring/amd/amd_ring.h"
#include "ring/amd/submit_paths.h"
#include "ring/umq/umq_device.h"

namespace zinc_rt::ring {
namespace {

constexpr SubmitPath kPaths[] = {{"userq", "AMDGPU_USERQ", UmqDevice::make}};

std::string why_no_umq() {
  const auto drm = DrmConnection::open("t2");
  if (!drm) return drm.error().message;
  const auto why = why_no_user_queue(**drm);
  return why.empty() ? why : "[t2] " + why;
}

constexpr Diagnostics kDiagnostics{.check = [] { return check_paths(kPaths, amd_images()); },
                                   .replay = [](std::span<const std::byte> log) { return replay_paths(kPaths, log); },
                                   .report = report_driver,
                                   .images = amd_images};

}  // namespace

extern const Tier kTier_t2;
// The tier is used only if the user names it, because it has not run on a card yet.
const Tier kTier_t2{.name = "t2",
                    .description = "AMD RDNA GPU, PM4 packets through a user-mode queue",
                    .priority = -1,
                    .unavailable_reason = why_no_umq,
                    .make_ring = [](const RingOptions&) -> Result<std::unique_ptr<Ring>> {
                      ZRT_TRY(const auto limit, device_limit());
                      ZRT_TRY(auto proven, first_proven(kPaths, limit));
                      return AmdRing::make(std::move(proven), amd_images());
                    },
                    .details = [] { return describe_proofs(kPaths); },
                    .built_with = [] { return std::string(amd_code()); },
                    .diagnostics = &kDiagnostics};

}  // namespace zinc_rt::ring
