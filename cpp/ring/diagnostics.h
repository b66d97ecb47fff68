// What a tier's device can be asked besides work, for people who look for a fault.
// Thread rule: plain functions; as Ring.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/zrt_file.h"
#include "zinc_rt/status.h"

namespace zinc_rt::ring {

// One thing that a device was asked to do.
struct DeviceCheck {
  std::string way, name;  // by which driver's queue; what
  std::string error;      // empty: it did
  double us = 0;          // that it took
};

// Compiled kernels that lie in the program.
struct CodeImage {
  std::string_view name;
  kernel::Target target;
  std::span<const std::byte> code;
};

struct Diagnostics {
  // Everything that the tier asks of its device, thing by thing, by each way that there is here.
  std::vector<DeviceCheck> (*check)();
  // Runs the log of a ring's packets (ZINC_RT_PACKET_LOG) on a fresh device, by the tier's first way that works, and
  // compares what memory holds after each submission. Errors: kCorrupt for what is no log, kUnavailable for the log of
  // another target.
  Result<std::vector<DeviceCheck>> (*replay)(std::span<const std::byte> log);
  // Lines "name: value" of driver, firmware and device; none where there is no device.
  std::vector<std::string> (*report)();
  std::span<const CodeImage> (*images)();
};

}  // namespace zinc_rt::ring
