#include "engine/output_ring.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>

namespace zinc_rt {

OutputRing::OutputRing(std::uint32_t capacity)
    : cells_(std::bit_ceil(std::clamp(capacity, 2u, 1u << 30))), mask_(cells_.size() - 1) {}

bool OutputRing::has_space() {
  const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  if (tail - head_seen_ <= mask_) return true;
  head_seen_ = head_.load(std::memory_order_acquire);
  return tail - head_seen_ <= mask_;
}

bool OutputRing::push(const OutputEvent& event) {
  if (is_closed() || !has_space()) return false;
  const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  OutputEvent& cell = cells_[tail & mask_];
  // Copies everything except the sequence, which the consumer may be reading.
  std::memcpy(static_cast<void*>(&cell), &event, offsetof(OutputEvent, sequence));
  tail_.store(tail + 1, std::memory_order_relaxed);
  // This store, the load in wake(), and the store and load in wait_pop() are sequentially consistent. So either the
  // producer sees that the consumer sleeps, or the consumer sees the event. The consumer never sleeps while an event is
  // in the ring.
  std::atomic_ref(cell.sequence).store(tail + 1, std::memory_order_seq_cst);
  wake();
  return true;
}

void OutputRing::wake() {
  if (asleep_.load(std::memory_order_seq_cst) == 0) return;
  asleep_.store(0, std::memory_order_seq_cst);
  asleep_.notify_one();
}

bool OutputRing::wait_for_space(std::chrono::microseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!is_closed()) {
    if (has_space()) return true;
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, std::chrono::milliseconds(1)));
  }
  return false;
}

bool OutputRing::has_event() {
  const std::uint64_t head = head_.load(std::memory_order_relaxed);
  return std::atomic_ref(cells_[head & mask_].sequence).load(std::memory_order_seq_cst) == head + 1;
}

bool OutputRing::pop(OutputEvent& event) {
  if (!has_event()) return false;
  const std::uint64_t head = head_.load(std::memory_order_relaxed);
  event = cells_[head & mask_];
  head_.store(head + 1, std::memory_order_release);
  return true;
}

bool OutputRing::wait_pop(OutputEvent& event) {
  while (!pop(event)) {
    if (is_closed()) return pop(event);  // an event may have come between the two checks
    asleep_.store(1, std::memory_order_seq_cst);
    if (has_event() || closed_.load(std::memory_order_seq_cst)) {
      asleep_.store(0, std::memory_order_seq_cst);
      continue;
    }
    asleep_.wait(1, std::memory_order_seq_cst);
  }
  return true;
}

void OutputRing::close() {
  closed_.store(true, std::memory_order_seq_cst);
  wake();
}

std::uint32_t OutputRing::size() const {
  const std::uint64_t head = head_.load(std::memory_order_acquire);
  const std::uint64_t tail = tail_.load(std::memory_order_acquire);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(tail - head, cells_.size()));
}

}  // namespace zinc_rt
