// A device whose queue has shown that it runs packets, and the ways of getting one.
// Thread rule: as Ring.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ring/amd/packet_queue.h"

namespace zinc_rt::ring {

class ProvenDevice {
 public:
  // Opens the device's path and has it run some NOPs and a fence, within a second. The fence's value is 1 then.
  static Result<ProvenDevice> make(std::unique_ptr<AmdDevice> device, std::chrono::milliseconds limit);
  ProvenDevice(ProvenDevice&& other) noexcept = default;
  ProvenDevice& operator=(ProvenDevice&& other) = delete;
  ~ProvenDevice();

  AmdDevice& device() { return *device_; }
  const AmdDevice& device() const { return *device_; }
  PacketQueue& queue() { return *queue_; }
  const PacketQueue& queue() const { return *queue_; }

 private:
  explicit ProvenDevice(std::unique_ptr<AmdDevice> device) : device_(std::move(device)) {}
  std::unique_ptr<AmdDevice> device_;
  AmdDevice::Memory page_;  // the fence's
  std::unique_ptr<PacketQueue> queue_;
};

// ZINC_RT_DEVICE_LIMIT. Errors: kInvalidArgument.
Result<std::chrono::milliseconds> device_limit();

// One driver's queue of one kind.
struct AmdWay {
  std::string_view name;  // as in ZINC_RT_AMD_PATH
  std::string_view description;
  Result<std::unique_ptr<AmdDevice>> (*make)();
};
// The first way that is proven, or of these the one that ZINC_RT_AMD_PATH names. Errors: what each way lacks.
Result<ProvenDevice> first_proven(std::span<const AmdWay> ways, std::chrono::milliseconds limit);
// One line for people: how each way's proof went.
std::string tell_proofs(std::span<const AmdWay> ways);

}  // namespace zinc_rt::ring
