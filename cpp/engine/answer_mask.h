// The mask of tokens that an answer's grammar allows next. It is made before each pick. Quick masks are made by the
// step loop's threads while the device computes the logits. Slow ones are made by a thread of MaskMaker; the request
// sits out steps meanwhile and delays nobody else.
// Thread rule: AnswerMask: the step thread, but for make(), which another thread may run between begin() and the end of
// it. MaskMaker: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/work_queue.h"
#include "engine/mask_pace.h"

namespace zinc_rt {

class AnswerMask {
 public:
  // The mask of the first token begins as stale.
  AnswerMask(const OutputGrammar& grammar, const std::shared_ptr<const grammar::Vocabulary>& vocabulary);
  // For another choice of the same request. REQUIRES: no thread is making the other's mask.
  AnswerMask(const AnswerMask& other);

  // Notes the picked token, which makes the mask stale. REQUIRES: no thread is making the mask.
  void take(std::int32_t token);
  bool is_making() const { return state_.load(std::memory_order_acquire) == kMaking; }
  bool is_stale() const { return state_.load(std::memory_order_relaxed) == kStale; }
  bool is_quick() const { return pace_->is_quick(); }
  // Announces a call of make() on another thread. REQUIRES: the mask is stale.
  void begin() { state_.store(kMaking, std::memory_order_relaxed); }
  void make();
  // Returns the mask (see OutputRow::mask), which is valid until the next take(). If another thread is making it,
  // waits; if it is stale, makes it. Errors: kInternal for a picked token that was not allowed; kInvalidArgument for a
  // grammar beyond its limits.
  Result<std::span<const std::uint32_t>> get();

 private:
  enum State : std::uint32_t { kMade, kStale, kMaking };
  Status advance();

  grammar::Matcher matcher_;
  std::shared_ptr<MaskPace> pace_;
  std::vector<std::uint32_t> words_;
  std::vector<std::int32_t> taken_;  // that the matcher has not seen
  Status status_;
  std::atomic<std::uint32_t> state_{kStale};
};

// Threads that make masks, with turns between tenants.
class MaskMaker {
 public:
  // done() is called after each mask that post() requested.
  explicit MaskMaker(std::function<void()> done) : done_(std::move(done)) {}
  // REQUIRES: begin() was called on `mask`. After stop() the mask is not made.
  void post(const std::string& tenant, std::shared_ptr<AnswerMask> mask);
  // Makes a stale mask before it returns. Errors: kCancelled; kUnavailable after stop().
  Status make(const std::string& tenant, AnswerMask& mask, const std::stop_token& cancel);
  void stop();

 private:
  static constexpr int kThreads = 2;
  const std::function<void()> done_;
  std::atomic<bool> is_stopped_{false};
  WorkQueue queue_{kThreads, kThreads, WorkQueue::Priority::kBehindSteps};
};

}  // namespace zinc_rt
