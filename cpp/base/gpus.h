// The GPUs that the kernel has drivers for, including those that this build cannot use.
// Thread rule: any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace zinc_rt {

// The maker of each render node, in the order of the nodes: "AMD", "Intel", "NVIDIA", or the number of another
// ("0x1002").
std::vector<std::string> gpu_makers(const std::filesystem::path& folder = "/sys/class/drm");

}  // namespace zinc_rt
