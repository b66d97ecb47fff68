// The tokens that the grammar of an answer allows next. The mask is made before each pick: by the step loop's threads
// while the device computes the logits, where that takes little; else by a thread of MaskMaker, while the request sits
// steps out and holds up nobody.
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
  // The mask of the first token is stale.
  AnswerMask(const OutputGrammar& grammar, const std::shared_ptr<const grammar::Vocabulary>& vocabulary);
  // For another choice of the same request. REQUIRES: nobody makes the other's mask.
  AnswerMask(const AnswerMask& other);

  // The token was picked; the mask is stale from here on. REQUIRES: nobody makes it.
  void take(std::int32_t token);
  bool is_making() const { return state_.load(std::memory_order_acquire) == kMaking; }
  bool is_stale() const { return state_.load(std::memory_order_relaxed) == kStale; }
  bool is_quick() const { return pace_->is_quick(); }
  // From a stale one on: make() follows, on another thread.
  void begin() { state_.store(kMaking, std::memory_order_relaxed); }
  void make();
  // As OutputRow::mask has it, until the next take(). Waits for the thread that makes it, and makes one that is stale.
  // Errors: kInternal for a picked token that was not allowed; kInvalidArgument for a grammar beyond its limits.
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

// Threads that make masks, by turns of tenants.
class MaskMaker {
 public:
  // done() is called after each mask that post() asked for.
  explicit MaskMaker(std::function<void()> done) : done_(std::move(done)) {}
  // `mask` has begun. Behind stop() it is not made.
  void post(const std::string& tenant, std::shared_ptr<AnswerMask> mask);
  // Makes a stale mask before it returns. Errors: kCancelled; kUnavailable behind stop().
  Status make(const std::string& tenant, AnswerMask& mask, const std::stop_token& cancel);
  void stop();

 private:
  static constexpr int kThreads = 2;
  const std::function<void()> done_;
  std::atomic<bool> is_stopped_{false};
  WorkQueue queue_{kThreads, kThreads, WorkQueue::Priority::kBehindSteps};
};

}  // namespace zinc_rt
