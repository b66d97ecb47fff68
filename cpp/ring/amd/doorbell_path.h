// DoorbellPath submits packets through a queue in memory that host and device share. The host writes packets to the
// queue's ring and rings a doorbell.
// Thread rule: one thread at a time.
#pragma once

#include "ring/amd/device.h"
#include "ring/amd/packet_builder.h"

namespace zinc_rt::ring {

// QueueFormat describes the packets and counters of one kind of queue.
struct QueueFormat {
  std::uint32_t unit;    // unit in which rptr, wptr and the doorbell count, in dwords
  std::uint32_t behind;  // difference between wptr and the doorbell's value, in units
  // Writes the packet that makes the queue run a buffer of packets.
  void (*indirect)(PacketBuilder& builder, std::uint64_t at, std::uint32_t n_dwords);
};
extern const QueueFormat kPm4Format;      // PM4, for queues of the compute driver
extern const QueueFormat kAqlFormat;      // AQL packets of 64 bytes that carry PM4
extern const QueueFormat kUserPm4Format;  // PM4, for user-mode queues

class DoorbellPath final : public PacketPath {
 public:
  using Word = AmdDevice::Word;
  // rptr and wptr count on and never wrap.
  struct Memory {
    std::span<std::uint32_t> ring;
    Word *rptr = nullptr, *wptr = nullptr, *doorbell = nullptr;
  };
  DoorbellPath(const Memory& memory, const QueueFormat& format) : memory_(memory), format_(format) {}

  bool has_space() const override;
  Status submit(std::uint64_t at, std::uint32_t n_dwords) override;
  std::string state() const override;

 private:
  Memory memory_;
  const QueueFormat& format_;
  PacketBuilder builder_;
  std::uint64_t put_ = 0;  // dwords written so far
};

}  // namespace zinc_rt::ring
