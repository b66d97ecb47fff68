#include "ring/amd/doorbell_path.h"

#include "base/error.h"

namespace zinc_rt::ring {

const QueueFormat kPm4Format{
    1, 0, [](PacketBuilder& builder, std::uint64_t at, std::uint32_t n_dwords) { builder.indirect(at, n_dwords); }};
const QueueFormat kAqlFormat{pm4::kAqlDwords, 1, [](PacketBuilder& builder, std::uint64_t at, std::uint32_t n_dwords) {
                               builder.aql_indirect(at, n_dwords);
                             }};
const QueueFormat kUserPm4Format{1, 0, [](PacketBuilder& builder, std::uint64_t at, std::uint32_t n_dwords) {
                                   builder.indirect(at, n_dwords, pm4::kIndirectValid | pm4::kIndirectInheritVmid);
                                 }};

bool DoorbellPath::has_space() const {
  const std::uint64_t got = memory_.rptr->load(std::memory_order_acquire) * format_.unit;
  return put_ - got + pm4::kAqlDwords <= memory_.ring.size();
}

// Once the doorbell is rung the device reads the ring up to wptr, so ring, wptr and doorbell must be written in this
// order. The store to wptr is a full barrier, because the ring and the device's window may be memory that the processor
// writes in any order. The doorbell is a register and gets a plain store.
Status DoorbellPath::submit(std::uint64_t at, std::uint32_t n_dwords) {
  builder_.clear();
  format_.indirect(builder_, at, n_dwords);
  for (const std::uint32_t dword : builder_.dwords()) memory_.ring[put_++ % memory_.ring.size()] = dword;
  const std::uint64_t wptr = put_ / format_.unit;
  memory_.wptr->store(wptr, std::memory_order_seq_cst);
  memory_.doorbell->store(wptr - format_.behind, std::memory_order_release);
  return {};
}

std::string DoorbellPath::state() const {
  return fmt::format("rptr {} of {}", memory_.rptr->load(std::memory_order_acquire), put_ / format_.unit);
}

}  // namespace zinc_rt::ring
