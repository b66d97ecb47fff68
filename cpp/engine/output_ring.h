// What the step loop has to say to those who read: tokens, preemptions, ends. One ring for all tenants; the reader
// fans out by generation. A push writes one cache line, the event's own, and a pop reads it: `sequence` in it says
// that it is there. The kernel is entered only to wake a reader that sleeps.
// Thread rule: one producer thread (push, wait_for_space) and one consumer thread (pop, wait_pop); close, is_closed and
// size from any.
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
  // On the heap; the event owns them once it is pushed, and who pops it owns them then. Null: none.
  TokenDetails* details = nullptr;  // kToken
  Error* error = nullptr;           // kRefused
  std::uint64_t sequence = 0;       // set by push: 1 for the ring's first event, then one more each
};
// The producer writes an event while the consumer may read its sequence: it has a cache line of its own.
static_assert(sizeof(OutputEvent) == 64 && std::is_trivially_copyable_v<OutputEvent>);
static_assert(offsetof(OutputEvent, sequence) % sizeof(std::uint64_t) == 0);

class OutputRing {
 public:
  explicit OutputRing(std::uint32_t capacity);  // rounded up to a power of two, 2 at least
  OutputRing(const OutputRing&) = delete;
  OutputRing& operator=(const OutputRing&) = delete;

  // False when the ring is full or closed; the event, its payload too, is then still the caller's.
  bool push(const OutputEvent& event);
  // True once there is room; false when the time is over or the ring closed. It looks again each millisecond, so that
  // the consumer's pops need not look for a waiting producer: a full ring means a reader that is seconds behind.
  bool wait_for_space(std::chrono::microseconds timeout);

  bool pop(OutputEvent& event);  // false when empty
  // Sleeps while the ring is empty; false when it is closed and all events are taken.
  bool wait_pop(OutputEvent& event);

  // Wakes both sides for good. Events that are in the ring can still be popped; where a push may run at the same time,
  // who owns the ring pops once more after both threads have ended, to free payloads.
  void close();
  bool is_closed() const { return closed_.load(std::memory_order_acquire); }

  std::uint32_t capacity() const { return static_cast<std::uint32_t>(cells_.size()); }
  std::uint32_t size() const;  // at some moment during the call

 private:
  bool has_space();
  bool has_event();
  void wake();

  std::vector<OutputEvent> cells_;
  const std::uint64_t mask_;

  // The producer's line; others look at tail_ in size() alone.
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  std::uint64_t head_seen_ = 0;  // the consumer's line is read again only when the ring looks full
  // The consumer's line.
  alignas(64) std::atomic<std::uint64_t> head_{0};
  // Written when the consumer falls asleep, is woken, and at the end; otherwise both sides only read it.
  alignas(64) std::atomic<std::uint32_t> asleep_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace zinc_rt
