#include "ring/tier.h"

#include "base/error.h"
#include "ring/cuda/cuda_ring.h"

namespace zinc_rt::ring {
namespace {

std::string unavailable_reason() {
  const auto driver = load_driver();
  if (!driver) return driver.error().message;
  const auto device = find_cuda_device(**driver);
  return device ? std::string() : device.error().message;
}

}  // namespace

extern const Tier kTier_t_cuda;
// Experts of long steps have whole tiles of tokens; the scheduler makes steps shorter where somebody waits for them.
const Tier kTier_t_cuda{"t_cuda",
                        "NVIDIA GPU by the driver's own interface",
                        50,
                        unavailable_reason,
                        [](const RingOptions& options) { return CudaRing::make(options.fast); },
                        nullptr,
                        2048};

}  // namespace zinc_rt::ring
