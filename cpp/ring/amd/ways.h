// The ways by which a tier's packets may get to an AMD GPU: which of them work here, and what they say of it.
// Thread rule: as Ring.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ring/amd/proven_device.h"
#include "ring/diagnostics.h"

namespace zinc_rt::ring {

// One driver's queue of one kind.
struct AmdWay {
  std::string_view name;  // as in ZINC_RT_AMD_PATH
  std::string_view description;
  Result<std::unique_ptr<AmdDevice>> (*make)();
};

// ZINC_RT_DEVICE_LIMIT. Errors: kInvalidArgument.
Result<std::chrono::milliseconds> device_limit();
// The first way whose device runs a fence and then every kind of packet rightly. Errors: what each way lacks.
Result<ProvenDevice> first_proven(std::span<const AmdWay> ways, std::chrono::milliseconds limit);
// Of several ways the one that ZINC_RT_AMD_PATH names, or all. Errors: kInvalidArgument.
Result<std::vector<AmdWay>> wanted_ways(std::span<const AmdWay> ways);
// One line for people: how each way's proof went.
std::string tell_proofs(std::span<const AmdWay> ways);
// By each way: its proof, its packets, many buffers, and a kernel of these images.
std::vector<DeviceCheck> check_ways(std::span<const AmdWay> ways, std::span<const CodeImage> images);
// By the first way that works. Errors: as Diagnostics::replay.
Result<std::vector<DeviceCheck>> replay_ways(std::span<const AmdWay> ways, std::span<const std::byte> log);
// Lines "name: value" of amdgpu: kernel, module, firmware, device.
std::vector<std::string> report_driver();

}  // namespace zinc_rt::ring
