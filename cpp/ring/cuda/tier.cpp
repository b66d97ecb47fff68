#include "ring/tier.h"

#include "base/error.h"
#include "kernel/zrt_file.h"
#include "ring/cuda/cuda_ring.h"
#include "ring/cuda/images.h"

namespace zinc_rt::ring {
namespace {

// The stand-in image if this build has no device code; else empty.
std::vector<std::byte> stand_in() {
  const auto file = kernel::read_zrt(cuda_images().front().zrt);
  if (!file) return {};
  const std::string_view code(reinterpret_cast<const char*>(file->code.data()), file->code.size());
  return code.starts_with(kStandIn) ? file->code : std::vector<std::byte>();
}

// Whether the driver accepts a stand-in as an image. Only the driver of the tests (tests_cpp/cuda_sim) does.
bool takes(const Driver& driver, const std::vector<std::byte>& code) {
  CUmodule module = nullptr;
  if (driver.cuModuleLoadData(&module, code.data()) != CUDA_SUCCESS) return false;
  driver.cuModuleUnload(module);
  return true;
}

std::string unavailable_reason() {
  static const auto kInPlaceOfCode = stand_in();
  const auto driver = load_driver();
  if (!kInPlaceOfCode.empty() && !(driver && takes(**driver, kInPlaceOfCode)))
    return "[t_cuda] this build has no device code, for no NVIDIA GPU was found when it was configured; "
           "configure with -DZRT_CUDA=ON, or install the Python package with ZRT_CUDA=ON in the environment";
  if (!driver) return driver.error().message;
  const auto device = find_cuda_device(**driver, 0);
  return device ? std::string() : device.error().message;
}

std::uint32_t n_devices() {
  const auto driver = load_driver();
  int n = 0;
  return driver && (*driver)->cuDeviceGetCount(&n) == CUDA_SUCCESS ? static_cast<std::uint32_t>(n) : 0;
}

}  // namespace

extern const Tier kTier_t_cuda;
// The default number of tokens per step is 2,048, because long steps give each expert whole tiles of tokens. If another
// request waits, the scheduler makes steps shorter.
const Tier kTier_t_cuda{"t_cuda",
                        "NVIDIA GPU by the driver's own interface",
                        50,
                        unavailable_reason,
                        [](const RingOptions& options) { return CudaRing::make(options.device, options.fast); },
                        n_devices,
                        nullptr,
                        [] { return std::string(cuda_code()); },
                        nullptr,
                        2048,
                        "f16"};

}  // namespace zinc_rt::ring
