// OutputRing carries events (tokens, preemptions, ends) from the step loops to the drainer. One ring serves all
// tenants; each event names its generation. A push writes one cache line (the event), and a pop reads it. The member
// `sequence` tells the reader that the event is complete. The only system call wakes a sleeping reader.
// Thread rule: one producer thread calls push and wait_for_space. One consumer thread calls pop and wait_pop. Any
// thread may call close, is_closed and size.
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
  std::uint32_t cached_tokens = 0;  // kAdmitted: prompt tokens read from the prefix cache
  OutputKind kind = OutputKind::kToken;
  bool is_first = false;                        // kAdmitted: false after a preemption
  std::uint8_t n_in_step = 1;                   // kToken: how many tokens the step produced for the request
  std::uint8_t n_drafts = 0, n_right = 0;       // kToken: how many drafts the step tried, and how many were right
  sched::Finish reason = sched::Finish::kStop;  // kFinished
  Generation* generation = nullptr;             // the generation that the event is about
  std::int64_t time_us = 0;                     // when the step that produced the event ended
  std::int64_t waited_us = 0;                   // kAdmitted: how long the request waited for the slot
  // `details` and `error` are allocated on the heap, or null. An event in the ring owns them. After pop() the consumer
  // must delete them.
  TokenDetails* details = nullptr;  // kToken
  Error* error = nullptr;           // kRefused
  std::uint64_t sequence = 0;       // push() sets it: the event's number in the ring, from 1 on
};
// Each event has its own cache line, because the producer may write an event while the consumer reads its neighbour.
static_assert(sizeof(OutputEvent) == 64 && std::is_trivially_copyable_v<OutputEvent>);
static_assert(offsetof(OutputEvent, sequence) % sizeof(std::uint64_t) == 0);

class OutputRing {
 public:
  explicit OutputRing(std::uint32_t capacity);  // the capacity is rounded up to a power of two, at least 2
  OutputRing(const OutputRing&) = delete;
  OutputRing& operator=(const OutputRing&) = delete;

  // Returns false if the ring is full or closed. The caller then still owns the event and its pointers.
  bool push(const OutputEvent& event);
  // Waits until the ring has room, and then returns true. Returns false if the timeout has passed or the ring was
  // closed. Polls every millisecond, so that pop need not check for a waiting producer. Polling suffices because a ring
  // is full only if the reader is seconds behind.
  bool wait_for_space(std::chrono::microseconds timeout);

  bool pop(OutputEvent& event);  // returns false if the ring is empty
  // Sleeps while the ring is empty. Returns false once the ring is closed and all events were taken.
  bool wait_pop(OutputEvent& event);

  // Closes the ring. Wakes the producer and the consumer, which do not sleep in the ring again. Events in the ring can
  // still be popped. If a push may run at the same time, the ring's owner must pop once more after both threads have
  // ended, to free what the events own.
  void close();
  bool is_closed() const { return closed_.load(std::memory_order_acquire); }

  std::uint32_t capacity() const { return static_cast<std::uint32_t>(cells_.size()); }
  std::uint32_t size() const;  // the number of events at some moment during the call

 private:
  bool has_space();
  bool has_event();
  void wake();

  std::vector<OutputEvent> cells_;
  const std::uint64_t mask_;

  // The members from here on are in the producer's cache line. Other threads read tail_ only in size().
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  std::uint64_t head_seen_ = 0;  // a copy of head_, updated only when the ring seems full
  // Number of events that were popped. Only the consumer writes it, so it has a cache line of its own.
  alignas(64) std::atomic<std::uint64_t> head_{0};
  // Written when the consumer falls asleep or is woken, and by close(). Otherwise both threads only read it.
  alignas(64) std::atomic<std::uint32_t> asleep_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace zinc_rt
