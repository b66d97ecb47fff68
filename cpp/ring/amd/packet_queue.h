// A queue of packets that a device reads: its ring, and the word that tells how far it is.
// Thread rule: one thread at a time.
#pragma once

#include <chrono>
#include <span>

#include "ring/amd/device.h"
#include "ring/amd/packet_builder.h"

namespace zinc_rt::ring {

class PacketQueue {
 public:
  // fence: a page of host memory, zeroed. limit: how long work may take before the device counts as lost.
  PacketQueue(AmdDevice& device, const AmdDevice::Queue& queue, const AmdDevice::Memory& fence,
              std::chrono::milliseconds limit);

  // Runs what lies at `at`, after all that was submitted before; once it has ended the fence is `value`, which grows.
  Status submit(std::uint64_t at, std::uint32_t n_dwords, std::uint64_t value);
  // Blocks until the fence is at least `value`. Errors: kInternal for a fault, or a device that is lost; they stay.
  Status wait(std::uint64_t value);
  // Whether the device runs packets at all: some NOPs, and a fence. Errors: as wait.
  Status prove();
  const Status& broken() const { return broken_; }

 private:
  std::uint64_t retired() const;
  Status push(std::span<const std::uint32_t> dwords);
  template <class IsDone>
  Status wait_within(const IsDone& is_done, std::chrono::milliseconds limit);

  AmdDevice& device_;
  AmdDevice::Queue queue_;
  AmdDevice::Memory fence_;
  std::chrono::milliseconds limit_;
  PacketBuilder builder_;
  std::uint64_t put_ = 0, last_value_ = 0;
  Status broken_;
};

}  // namespace zinc_rt::ring
