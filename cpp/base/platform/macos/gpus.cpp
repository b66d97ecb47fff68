#include "base/platform/gpus.h"

namespace zinc_rt {

// Tiers for GPUs of macOS find them by themselves, and there are none yet.
std::vector<std::string> gpu_makers(const std::filesystem::path&) {
  return {};
}

}  // namespace zinc_rt
