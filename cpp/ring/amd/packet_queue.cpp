#include "ring/amd/packet_queue.h"

#include "base/error.h"
#include "ring/wait.h"

namespace zinc_rt::ring {

PacketQueue::PacketQueue(AmdDevice& device, const AmdDevice::Queue& queue, const AmdDevice::Memory& fence,
                         std::chrono::milliseconds limit)
    : device_(device), queue_(queue), fence_(fence), limit_(limit) {}

std::uint64_t PacketQueue::retired() const {
  return reinterpret_cast<const AmdDevice::Word*>(fence_.host)->load(std::memory_order_acquire);
}

template <class IsDone>
Status PacketQueue::wait_within(const IsDone& is_done, std::chrono::milliseconds limit) {
  ZRT_CHECK_OK(broken_);
  broken_ = wait_until(is_done, [&](auto waited) -> Status {
    ZRT_CHECK_OK(device_.check());
    if (waited < limit) return {};
    return fail(StatusCode::kInternal,
                "[amd] the device is lost: no end of work after {} ms, fence {} of {}, rptr {} of {}", limit.count(),
                retired(), last_value_, queue_.rptr->load(), put_);
  });
  return broken_;
}

// The device reads the ring up to wptr once the doorbell is rung, so each is written after the one before it. The store
// to wptr is a full barrier, since the ring may be memory that the processor writes in any order. The doorbell is a
// register: it gets a plain store.
Status PacketQueue::push(std::span<const std::uint32_t> dwords) {
  const auto has_space = [&] {
    return put_ - queue_.rptr->load(std::memory_order_acquire) + dwords.size() <= queue_.ring.size();
  };
  ZRT_CHECK_OK(wait_within(has_space, limit_));
  for (const std::uint32_t dword : dwords) queue_.ring[put_++ % queue_.ring.size()] = dword;
  queue_.wptr->store(put_, std::memory_order_seq_cst);
  queue_.doorbell->store(put_, std::memory_order_release);
  return {};
}

Status PacketQueue::submit(std::uint64_t at, std::uint32_t n_dwords, std::uint64_t value) {
  builder_.clear();
  builder_.indirect(at, n_dwords);
  builder_.release(fence_.va, value);
  ZRT_CHECK_OK(push(builder_.dwords()));
  last_value_ = value;
  return {};
}

Status PacketQueue::wait(std::uint64_t value) {
  return wait_within([&] { return retired() >= value; }, limit_);
}

Status PacketQueue::prove() {
  constexpr auto kLimit = std::chrono::seconds(1);
  constexpr std::uint32_t kNops = 8;
  builder_.clear();
  builder_.nop(kNops);
  builder_.release(fence_.va, ++last_value_);
  ZRT_CHECK_OK(push(builder_.dwords()));
  return wait_within([&] { return retired() >= last_value_; }, kLimit);
}

}  // namespace zinc_rt::ring
