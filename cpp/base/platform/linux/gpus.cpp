#include "base/platform/gpus.h"

#include <algorithm>
#include <fstream>
#include <system_error>
#include <utility>

namespace zinc_rt {
namespace {

constexpr std::pair<const char*, const char*> kMakers[] = {
    {"0x1002", "AMD"}, {"0x8086", "Intel"}, {"0x10de", "NVIDIA"}};

}  // namespace

std::vector<std::string> gpu_makers(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> nodes;
  std::error_code ignored;
  for (std::filesystem::directory_iterator it(folder, ignored), end; it != end; it.increment(ignored))
    if (it->path().filename().string().starts_with("renderD")) nodes.push_back(it->path());
  std::ranges::sort(nodes);
  std::vector<std::string> makers;
  for (const auto& node : nodes) {
    std::string number;
    if (!(std::ifstream(node / "device" / "vendor") >> number)) continue;
    const auto* row =
        std::ranges::find(kMakers, number, [](const auto& maker) { return std::string_view(maker.first); });
    makers.push_back(row == std::end(kMakers) ? number : row->second);
  }
  return makers;
}

}  // namespace zinc_rt
