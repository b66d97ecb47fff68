// Carries events from the step loop to the drainer: tokens, preemptions, ends. One ring serves all tenants; each event
// names its generation. A push writes one cache line, the event, and a pop reads it; `sequence` tells that the event is
// complete. There is a system call only to wake a sleeping reader. Thread rule: one producer thread (push,
// wait_for_space) and one consumer thread (pop, wait_pop); close, is_closed and size from any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "sched/types.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

enum class OutputKind : std::uint8_t { kAdmitted, kToken, kPreempted, kFinished, kRefused };

class Generation;
struct TokenDetails;

struct alignas(64) OutputEvent {
  std::int32_t token_id = 0;        // kToken
  std::uint32_t cached_tokens = 0;  // kAdmitted: prompt tokens that were cached
  OutputKind kind = OutputKind::kToken;
  bool is_first = false;                        // kAdmitted: for the first time
  sched::Finish reason = sched::Finish::kStop;  // kFinished
  Generation* generation = nullptr;             // whom it is for
  std::int64_t time_us = 0;                     // when the step that made it ended
  std::int64_t waited_us = 0;                   // kAdmitted
  // On the heap. The event owns them once it is pushed, and later the thread that pops it. Null: none.
  TokenDetails* details = nullptr;  // kToken
  Error* error = nullptr;           // kRefused
  std::uint64_t sequence = 0;       // set by push: 1 for the ring's first event, then one more each
};
// Each event has its own cache line, because the producer may write one while the consumer reads the next.
static_assert(sizeof(OutputEvent) == 64 && std::is_trivially_copyable_v<OutputEvent>);
static_assert(offsetof(OutputEvent, sequence) % sizeof(std::uint64_t) == 0);

class OutputRing {
 public:
  explicit OutputRing(std::uint32_t capacity);  // rounded up to a power of two, 2 at least
  OutputRing(const OutputRing&) = delete;
  OutputRing& operator=(const OutputRing&) = delete;

  // Returns false if the ring is full or closed. The caller then still owns the event and what it points to.
  bool push(const OutputEvent& event);
  // Returns true once there is room, false if the time is up or the ring was closed. It polls every millisecond, so pop
  // need not check for a waiting producer. That is enough, because a ring is full only if the reader is seconds behind.
  bool wait_for_space(std::chrono::microseconds timeout);

  bool pop(OutputEvent& event);  // false when empty
  // Sleeps while the ring is empty. Returns false once it is closed and all events are taken.
  bool wait_pop(OutputEvent& event);

  // Wakes both sides for good. Events in the ring can still be popped. If a push may run at the same time, the ring's
  // owner pops once more after both threads have ended, to free what the events own.
  void close();
  bool is_closed() const { return closed_.load(std::memory_order_acquire); }

  std::uint32_t capacity() const { return static_cast<std::uint32_t>(cells_.size()); }
  std::uint32_t size() const;  // as it was at some moment during the call

 private:
  bool has_space();
  bool has_event();
  void wake();

  std::vector<OutputEvent> cells_;
  const std::uint64_t mask_;

  // The cache line of the producer; others read tail_ in size() only.
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  std::uint64_t head_seen_ = 0;  // head_ is read again only when the ring looks full
  // The cache line of the consumer.
  alignas(64) std::atomic<std::uint64_t> head_{0};
  // Written when the consumer falls asleep or is woken, and at the end. Otherwise both sides only read it.
  alignas(64) std::atomic<std::uint32_t> asleep_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace zinc_rt
