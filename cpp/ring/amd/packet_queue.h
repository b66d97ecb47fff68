// PacketQueue submits buffers of packets to a device, and follows its progress by a word in memory, the fence.
// Thread rule: one thread at a time.
#pragma once

#include <chrono>
#include <span>

#include "ring/amd/device.h"
#include "ring/amd/packet_builder.h"

namespace zinc_rt::ring {

class PacketQueue {
 public:
  static constexpr std::uint64_t kPageBytes = 4096;
  // page: kPageBytes of zeroed host memory, which holds the fence. limit: how long work may take before the device
  // counts as lost.
  PacketQueue(AmdDevice& device, std::unique_ptr<PacketPath> path, const AmdDevice::Memory& page,
              std::chrono::milliseconds limit);

  // Ends a buffer of packets with a packet that sets the fence to `value`. Values must grow from buffer to buffer.
  void finish(PacketBuilder& builder, std::uint64_t value) const;
  // Runs the buffer of packets at `at`. REQUIRES: finish() has ended it with `value`.
  Status submit(std::uint64_t at, std::uint32_t n_dwords, std::uint64_t value);
  // Blocks until the fence is at least `value`. Errors: kInternal for a fault or a lost device; later calls repeat it.
  Status wait(std::uint64_t value);
  // Checks that the device runs packets at all: submits some NOPs and a packet that sets the fence to 1. Errors: those
  // of wait().
  Status prove();
  const Status& broken() const { return broken_; }

 private:
  std::uint64_t retired() const;
  template <class IsDone>
  Status wait_within(const IsDone& is_done, std::chrono::milliseconds limit);

  AmdDevice& device_;
  std::unique_ptr<PacketPath> path_;
  AmdDevice::Memory page_;
  std::chrono::milliseconds limit_;
  std::uint64_t last_value_ = 0;
  Status broken_;
};

}  // namespace zinc_rt::ring
