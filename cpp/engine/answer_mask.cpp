#include "engine/answer_mask.h"

#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/this_thread.h"

namespace zinc_rt {

void MaskPace::note(std::chrono::nanoseconds took) {
  if (took > kLong) return n_slow_.store(kWatched, std::memory_order_relaxed);
  auto n = n_slow_.load(std::memory_order_relaxed);
  while (n > 0 && !n_slow_.compare_exchange_weak(n, n - 1, std::memory_order_relaxed)) {
  }
}

AnswerMask::AnswerMask(const OutputGrammar& grammar, std::shared_ptr<const grammar::Vocabulary> vocabulary)
    : matcher_(grammar.grammar, vocabulary), pace_(grammar.pace), words_(vocabulary->n_mask_words()) {
  make();
}

void AnswerMask::take(std::int32_t token) {
  taken_.push_back(token);
  state_.store(kStale, std::memory_order_relaxed);
}

Status AnswerMask::advance() {
  ZRT_CHECK_OK(status_);
  for (const std::int32_t token : taken_) {
    ZRT_TRY(const bool is_allowed, matcher_.accept(token));
    if (!is_allowed) return fail(StatusCode::kInternal, "[grammar] token {} was picked and is not allowed", token);
  }
  taken_.clear();
  return matcher_.fill(words_);
}

void AnswerMask::make() {
  const auto begin = std::chrono::steady_clock::now();
  status_ = advance();
  pace_->note(std::chrono::steady_clock::now() - begin);
  state_.store(kMade, std::memory_order_release);
  state_.notify_all();
}

Result<std::span<const std::uint32_t>> AnswerMask::get() {
  if (is_stale()) make();
  state_.wait(kMaking, std::memory_order_acquire);
  ZRT_CHECK_OK(status_);
  return words_;
}

MaskMaker::MaskMaker(std::function<void()> done) : done_(std::move(done)) {
  for (int i = 0; i < kThreads; ++i)
    threads_.emplace_back([this] {
      name_thread("zrt-mask");
      run();
    });
}

MaskMaker::~MaskMaker() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  there_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void MaskMaker::post(std::shared_ptr<AnswerMask> mask) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(mask));
  }
  there_.notify_one();
}

void MaskMaker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    there_.wait(lock, [&] { return is_stopped_ || !waiting_.empty(); });
    if (is_stopped_) return;
    const auto mask = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    mask->make();
    done_();
    lock.lock();
  }
}

}  // namespace zinc_rt
