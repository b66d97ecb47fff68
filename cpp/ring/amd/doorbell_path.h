// A queue in memory that host and device share: the host writes packets to its ring and rings a doorbell.
// Thread rule: one thread at a time.
#pragma once

#include "ring/amd/device.h"
#include "ring/amd/packet_builder.h"

namespace zinc_rt::ring {

// The format of a queue's packets and counters.
struct QueueFormat {
  std::uint32_t unit;    // rptr, wptr and the doorbell count units of this many dwords
  std::uint32_t behind;  // what is subtracted from wptr for the doorbell
  void (*indirect)(PacketBuilder& builder, std::uint64_t at, std::uint32_t n_dwords);
};
extern const QueueFormat kPm4Format;      // PM4, for queues of the compute driver
extern const QueueFormat kAqlFormat;      // AQL packets of 64 bytes that carry PM4
extern const QueueFormat kUserPm4Format;  // PM4, for user-mode queues

class DoorbellPath final : public PacketPath {
 public:
  using Word = AmdDevice::Word;
  // rptr and wptr never wrap.
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
