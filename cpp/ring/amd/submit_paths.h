// Finds out by which paths (driver and kind of queue) this machine can submit packets to an AMD GPU.
// Thread rule: one thread at a time, as for Ring.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ring/amd/proven_device.h"
#include "ring/diagnostics.h"

namespace zinc_rt::ring {

// SubmitPath is a way to submit packets: one kind of queue of one driver.
struct SubmitPath {
  std::string_view name;  // the value of ZINC_RT_AMD_PATH that selects it
  std::string_view description;
  Result<std::unique_ptr<AmdDevice>> (*make)();
};

// Reads ZINC_RT_DEVICE_LIMIT, the time after which a device counts as lost. Errors: kInvalidArgument.
Result<std::chrono::milliseconds> device_limit();
// Opens the first path whose device runs a fence and then every kind of packet correctly. If no path works, the error
// lists what each path lacks.
Result<ProvenDevice> first_proven(std::span<const SubmitPath> paths, std::chrono::milliseconds limit);
// Returns the path that ZINC_RT_AMD_PATH names, or all paths if the variable is not set. Errors: kInvalidArgument.
Result<std::vector<SubmitPath>> wanted_paths(std::span<const SubmitPath> paths);
// Returns one line for display: the result of each path's test.
std::string describe_proofs(std::span<const SubmitPath> paths);
// Diagnostics: runs all checks on each path: the path's own test, every kind of packet, many buffers, and a kernel from
// `images`.
std::vector<DeviceCheck> check_paths(std::span<const SubmitPath> paths, std::span<const CodeImage> images);
// Replays a packet log on the first path that works, and compares the results with the log. Errors: those of
// first_proven() and replay_packets().
Result<std::vector<DeviceCheck>> replay_paths(std::span<const SubmitPath> paths, std::span<const std::byte> log);
// Returns lines "name: value" about amdgpu: kernel, module, firmware, device.
std::vector<std::string> report_driver();

}  // namespace zinc_rt::ring
