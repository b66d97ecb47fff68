#include "ring/amd/packet_queue.h"

#include <cstring>

#include "base/error.h"
#include "ring/wait.h"

namespace zinc_rt::ring {
namespace {

constexpr std::uint64_t kProofAt = 256;  // offset in the page, after the fence

}  // namespace

PacketQueue::PacketQueue(AmdDevice& device, std::unique_ptr<PacketPath> path, const AmdDevice::Memory& page,
                         std::chrono::milliseconds limit)
    : device_(device), path_(std::move(path)), page_(page), limit_(limit) {}

std::uint64_t PacketQueue::retired() const {
  return reinterpret_cast<const AmdDevice::Word*>(page_.host)->load(std::memory_order_acquire);
}

template <class IsDone>
Status PacketQueue::wait_within(const IsDone& is_done, std::chrono::milliseconds limit) {
  ZRT_CHECK_OK(broken_);
  broken_ = wait_until(is_done, [&](auto waited) -> Status {
    ZRT_CHECK_OK(device_.check());
    if (waited < limit) return {};
    return fail(StatusCode::kInternal, "[amd] the device is lost: no end of work after {} ms, fence {} of {}, {}",
                limit.count(), retired(), last_value_, path_->state());
  });
  return broken_;
}

void PacketQueue::finish(PacketBuilder& builder, std::uint64_t value) const {
  builder.release(page_.va, value);
  builder.pad(pm4::kBufferDwords);
}

Status PacketQueue::submit(std::uint64_t at, std::uint32_t n_dwords, std::uint64_t value) {
  ZRT_CHECK_OK(wait_within([&] { return path_->has_space(); }, limit_));
  broken_ = path_->submit(at, n_dwords);
  if (broken_) last_value_ = value;
  return broken_;
}

Status PacketQueue::wait(std::uint64_t value) {
  return wait_within([&] { return retired() >= value; }, limit_);
}

Status PacketQueue::prove() {
  constexpr auto kLimit = std::chrono::seconds(1);
  constexpr std::uint32_t kNops = 8;
  PacketBuilder builder;
  builder.nop(kNops);
  finish(builder, 1);
  const auto dwords = std::as_bytes(builder.dwords());
  std::memcpy(page_.host + kProofAt, dwords.data(), dwords.size());
  ZRT_CHECK_OK(submit(page_.va + kProofAt, static_cast<std::uint32_t>(builder.dwords().size()), 1));
  return wait_within([&] { return retired() >= 1; }, kLimit);
}

}  // namespace zinc_rt::ring
