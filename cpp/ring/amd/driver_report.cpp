#include <sys/utsname.h>

#include "base/error.h"
#include "ring/amd/drm_connection.h"
#include "ring/amd/submit_paths.h"

namespace zinc_rt::ring {
namespace {

struct FirmwareRow {
  drm::Firmware firmware;
  const char* name;
};
constexpr FirmwareRow kFirmwares[] = {{drm::kMe, "ME"}, {drm::kPfp, "PFP"}, {drm::kMec, "MEC"}, {drm::kMes, "MES"}};

}  // namespace

std::vector<std::string> report_driver() {
  std::vector<std::string> lines;
  if (utsname system{}; ::uname(&system) == 0) lines.push_back(fmt::format("kernel: {}", system.release));
  const auto drm = DrmConnection::open("amd");
  if (!drm) {
    lines.push_back(fmt::format("render node: {}", drm.error().message));
    return lines;
  }
  const auto& compute = (*drm)->compute();
  lines.push_back(fmt::format("compute engine: {}.{}.{}, {} units, rings {:#x}", compute.version >> 16,
                              compute.version >> 8 & 255, compute.version & 255, (*drm)->device().n_cus,
                              compute.rings));
  lines.push_back(
      fmt::format("user queues: mask {:#x}, {} slots", (*drm)->device().userq_ip_mask,
                  compute.n_user_slots == drm::kNotTold ? "unknown" : std::to_string(compute.n_user_slots)));
  drm::MemoryInfo memory{};
  if ((*drm)->ask(drm::kMemory, memory))
    lines.push_back(fmt::format("memory: {} bytes, {} of them in the window, {} used", memory.vram.total,
                                memory.visible_vram.total, memory.vram.used));
  for (const FirmwareRow& row : kFirmwares) {
    drm::FirmwareInfo firmware{};
    if ((*drm)->ask(drm::kFirmware, firmware, row.firmware))
      lines.push_back(fmt::format("firmware {}: version {}, feature {}", row.name, firmware.version, firmware.feature));
  }
  return lines;
}

}  // namespace zinc_rt::ring
