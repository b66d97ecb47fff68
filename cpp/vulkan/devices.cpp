#include "vulkan/devices.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/options.h"
#include "vulkan/self_test.h"

namespace zinc_rt::vulkan {
namespace {

struct Proven {
  DeviceInfo info;
  Fma fma = Fma::kNative;
  bool has_matrices = false;
  std::string differences;  // which forms of fma, and which matrices, computed other bits and are not used
};

Result<Proven> prove() {
  ZRT_TRY(const DeviceInfo info, choose_device(options::get("ZINC_RT_VULKAN_DEVICE")));
  ZRT_TRY(const auto device, Device::open(info));
  ZRT_TRY(auto differences, prove_arithmetic(*device));
  return Proven{info, device->fma(), device->uses_matrices(), std::move(differences)};
}

const Result<Proven>& proven() {
  static const Result<Proven> once = prove();
  return once;
}

}  // namespace

Result<std::unique_ptr<Device>> open_proven_device() {
  if (!proven()) return std::unexpected(proven().error());
  ZRT_TRY(auto device, Device::open(proven()->info));
  device->use(proven()->fma);
  device->use_matrices(proven()->has_matrices);
  return device;
}

std::string unavailable_reason() {
  return proven() ? std::string() : proven().error().message;
}

std::string describe_devices() {
  const auto list = list_devices();
  if (!list) return list.error().message;
  std::vector<std::string> lines;
  for (const DeviceInfo& device : *list) {
    std::string line = device.driver.empty() ? device.name : fmt::format("{} ({})", device.name, device.driver);
    if (!device.missing.empty())
      line += " lacks " + device.missing;
    else if (proven() && proven()->info.handle == device.handle)
      line += fmt::format(": arithmetic proven exact, fma {}, {}{}", to_string(proven()->fma),
                          proven()->has_matrices ? "int8 matrices" : "no int8 matrices",
                          proven()->differences.empty() ? "" : " (" + proven()->differences + ")");
    else
      line += ": not chosen";
    lines.push_back(std::move(line));
  }
  return fmt::format("{}", fmt::join(lines, "; "));
}

}  // namespace zinc_rt::vulkan
