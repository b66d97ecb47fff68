// Diagnostics holds a tier's functions for people who search for a fault of a device or driver: tests, replays and
// reports. `zinc-rt pm4-test`, `replay` and `tiers` call them.
// Thread rule: one thread at a time, as for Ring.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/zrt_file.h"
#include "zinc_rt/status.h"

namespace zinc_rt::ring {

// DeviceCheck is the result of one test of a device.
struct DeviceCheck {
  std::string way, name;  // way: driver and kind of queue that ran the test; name: what was tested
  std::string error;      // empty if the test passed
  double us = 0;          // duration of the test
};

// Compiled kernels that are embedded in the program.
struct CodeImage {
  std::string_view name;
  kernel::Target target;
  std::span<const std::byte> code;
};

// Diagnostics holds the functions that a tier provides for such tests and reports.
struct Diagnostics {
  // Checks every feature that the tier needs from its device, one by one, on each path to the device that this machine
  // has.
  std::vector<DeviceCheck> (*check)();
  // Replays a packet log (ZINC_RT_PACKET_LOG) on a fresh device, by the tier's first path that works, and compares the
  // memory after each submission. Errors: kCorrupt for a file that is not a log, kUnavailable for the log of another
  // target.
  Result<std::vector<DeviceCheck>> (*replay)(std::span<const std::byte> log);
  // Returns lines "name: value" about driver, firmware and device. Empty if the machine has no such device.
  std::vector<std::string> (*report)();
  std::span<const CodeImage> (*images)();
};

}  // namespace zinc_rt::ring
