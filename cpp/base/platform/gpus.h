// Lists the GPUs for which the Linux kernel has a driver, including those that this build cannot use. Messages use the
// list to say that a GPU is present but not supported. On other systems the list is empty.
// Thread rule: any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace zinc_rt {

// Returns the vendor of each GPU (render node), in the order of the nodes: "AMD", "Intel", "NVIDIA", or another
// vendor's PCI number as text ("0x1234").
std::vector<std::string> gpu_makers(const std::filesystem::path& folder = "/sys/class/drm");

}  // namespace zinc_rt
