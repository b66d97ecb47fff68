// The GPUs that the kernel has drivers for, whether this build can use them or not.
// Thread rule: any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace zinc_rt {

// "AMD", "Intel", "NVIDIA", or the number of another maker ("0x1002"): of each render node one, in their order.
std::vector<std::string> gpu_makers(const std::filesystem::path& folder = "/sys/class/drm");

}  // namespace zinc_rt
