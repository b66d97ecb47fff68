// AnswerMask computes which tokens a request's grammar allows as the next token of its answer. Each pick of a token
// needs a new mask. If a grammar's masks are quick to compute, threads of the step loop compute them while the device
// computes the logits. If they are slow, a thread of MaskMaker computes them. The request is then left out of steps
// until its mask is ready, so that it does not delay other requests.
// Thread rule for AnswerMask: the step thread. Between begin() and the end of make(), another thread may run make().
// Thread rule for MaskMaker: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/work_queue.h"
#include "engine/mask_pace.h"

namespace zinc_rt {

class AnswerMask {
 public:
  // The mask is stale at first: the mask for the first token is not computed yet.
  AnswerMask(const OutputGrammar& grammar, const std::shared_ptr<const grammar::Vocabulary>& vocabulary);
  // Copies the state for another of the request's n choices. REQUIRES: no thread runs other.make().
  AnswerMask(const AnswerMask& other);

  // Appends a picked token to the answer, so that the mask becomes stale. REQUIRES: no thread runs make().
  void take(std::int32_t token);
  bool is_making() const { return state_.load(std::memory_order_acquire) == kMaking; }
  bool is_stale() const { return state_.load(std::memory_order_relaxed) == kStale; }
  bool is_quick() const { return pace_->is_quick(); }
  // Announces that another thread will call make(). REQUIRES: the mask is stale.
  void begin() { state_.store(kMaking, std::memory_order_relaxed); }
  void make();
  // Returns the mask: bit t % 32 of word t / 32 is set if token t is allowed. It is valid until the next take(). If
  // another thread runs make(), waits for it. If the mask is stale (a token was picked since it was computed), computes
  // it. Errors: kInternal if a picked token was not allowed; kInvalidArgument if the grammar exceeds its limits.
  Result<std::span<const std::uint32_t>> get();

  // Return a guess of the answer's next tokens, which is valid until the next guess or take(). guess() returns the
  // tokens at the beginning of `proposed` that the grammar allows one after the other. guess_forced() returns at most
  // `most` tokens of the text that the grammar forces, and computes the mask. The guess is empty if a picked token was
  // not allowed. REQUIRES: no thread runs make().
  std::span<const std::int32_t> guess(std::span<const std::int32_t> proposed);
  std::span<const std::int32_t> guess_forced(std::size_t most);
  // Returns the mask for the pick after the first n tokens of the guess. It is valid until the next take(). REQUIRES: n
  // ascends from call to call.
  Result<std::span<const std::uint32_t>> get(std::size_t n);

 private:
  enum State : std::uint32_t { kMade, kStale, kMaking };
  void take_picked();
  void note(Status status);

  grammar::Matcher matcher_;
  std::shared_ptr<MaskPace> pace_;
  // The mask that get() returns, one bit per token.
  std::vector<std::uint32_t> words_;
  std::vector<std::int32_t> taken_;  // picked tokens that matcher_ has not processed yet
  // The last result of guess() or guess_forced().
  std::vector<std::int32_t> guess_;
  // A copy of the matcher that has also processed the first n_ahead_ tokens of the guess.
  std::optional<grammar::Matcher> ahead_;
  std::size_t n_ahead_ = 0;
  // words_ahead_[i] is the mask after the first i + 1 tokens of the guess.
  std::vector<std::vector<std::uint32_t>> words_ahead_;
  // The first error of the matcher. Once it is set, get() returns it.
  Status status_;
  // kStale: a token was picked since the mask was computed. kMaking: a thread of MaskMaker computes the mask.
  std::atomic<std::uint32_t> state_{kStale};
};

// MaskMaker is a pool of threads that compute slow masks. Tenants share its threads fairly (base/work_queue.h).
class MaskMaker {
 public:
  static constexpr int kThreads = 2;
  // `done` is called on a thread of the pool after each mask that post() queued. With 0 threads, the callers of post()
  // and make() compute the masks.
  explicit MaskMaker(std::function<void()> done, int n_threads = kThreads)
      : done_(std::move(done)), queue_(n_threads, std::max(n_threads, 1), WorkQueue::Priority::kBehindSteps) {}
  // Queues a mask to be computed. After stop() it is dropped. REQUIRES: begin() was called on `mask`.
  void post(const std::string& tenant, std::shared_ptr<AnswerMask> mask);
  // Computes a stale mask on a thread of the pool and waits for it. Errors: kCancelled; kUnavailable after stop().
  Status make(const std::string& tenant, AnswerMask& mask, const std::stop_token& cancel);
  void stop();

 private:
  const std::function<void()> done_;
  std::atomic<bool> is_stopped_{false};
  WorkQueue queue_;
};

}  // namespace zinc_rt
