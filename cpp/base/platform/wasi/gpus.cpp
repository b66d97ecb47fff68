#include "base/platform/gpus.h"

namespace zinc_rt {

// A program does not see the devices of its host.
std::vector<std::string> gpu_makers(const std::filesystem::path&) {
  return {};
}

}  // namespace zinc_rt
