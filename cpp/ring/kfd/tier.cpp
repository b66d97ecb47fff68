#include "ring/tier.h"

#include "base/error.h"
#include "base/options.h"
#include "ring/amd/amd_ring.h"
#include "ring/kfd/kfd_device.h"

namespace zinc_rt::ring {
namespace {

std::string unavailable_reason() {
  const auto connection = KfdConnection::open();
  if (!connection) return connection.error().message;
  const auto target = kfd::target_of((*connection)->node());
  return target ? std::string() : target.error().message;
}

}  // namespace

extern const Tier kTier_t1;
// Only when it is forced: it has kernels for dense models alone, and has not run on a card yet.
const Tier kTier_t1{.name = "t1",
                    .description = "AMD RDNA GPU, PM4 packets through the kernel's compute driver",
                    .priority = -1,
                    .unavailable_reason = unavailable_reason,
                    .make_ring = [](const RingOptions&) -> Result<std::unique_ptr<Ring>> {
                      constexpr std::int64_t kMostSeconds = 24 * 3600;
                      ZRT_TRY(const auto seconds, options::get_int("ZINC_RT_DEVICE_LIMIT", 1, kMostSeconds));
                      ZRT_TRY(auto device, KfdDevice::make());
                      return AmdRing::make(std::move(device), amd_images(), std::chrono::seconds(seconds));
                    },
                    .built_with = [] { return std::string(amd_code()); }};

}  // namespace zinc_rt::ring
