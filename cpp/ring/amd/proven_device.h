// ProvenDevice is a device whose queue has been tested with packets, so that a ring can be built on it.
// Thread rule: one thread at a time, as for Ring.
#pragma once

#include <memory>

#include "ring/amd/packet_queue.h"

namespace zinc_rt::ring {

class ProvenDevice {
 public:
  // Opens the device's path, and runs some NOPs and a fence on it within a second. The fence's value is 1 after that.
  static Result<ProvenDevice> make(std::unique_ptr<AmdDevice> device, std::chrono::milliseconds limit);
  ProvenDevice(ProvenDevice&& other) noexcept = default;
  ProvenDevice& operator=(ProvenDevice&& other) = delete;
  ~ProvenDevice();

  AmdDevice& device() { return *device_; }
  const AmdDevice& device() const { return *device_; }
  PacketQueue& queue() { return *queue_; }
  const PacketQueue& queue() const { return *queue_; }
  // The largest value that was handed out for the fence. Each submission raises it.
  std::uint64_t last_fence = 1;

 private:
  explicit ProvenDevice(std::unique_ptr<AmdDevice> device) : device_(std::move(device)) {}
  std::unique_ptr<AmdDevice> device_;
  AmdDevice::Memory page_;  // the page of memory that holds the fence
  std::unique_ptr<PacketQueue> queue_;
};

}  // namespace zinc_rt::ring
