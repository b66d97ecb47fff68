#include "engine/answer_mask.h"

#include <chrono>
#include <utility>

#include "base/error.h"

namespace zinc_rt {

void MaskPace::note(std::chrono::nanoseconds took) {
  if (took > kLong) return n_slow_.store(kWatched, std::memory_order_relaxed);
  auto n = n_slow_.load(std::memory_order_relaxed);
  while (n > 0 && !n_slow_.compare_exchange_weak(n, n - 1, std::memory_order_relaxed)) {
  }
}

AnswerMask::AnswerMask(const OutputGrammar& grammar, const std::shared_ptr<const grammar::Vocabulary>& vocabulary)
    : matcher_(grammar.grammar, vocabulary), pace_(grammar.pace), words_(vocabulary->n_mask_words()) {}

AnswerMask::AnswerMask(const AnswerMask& other)
    : matcher_(other.matcher_),
      pace_(other.pace_),
      words_(other.words_),
      taken_(other.taken_),
      status_(other.status_),
      state_(other.state_.load(std::memory_order_acquire)) {}

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
  if (!status_) status_ = std::unexpected(about("output_format", std::move(status_).error()));
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

void MaskMaker::post(const std::string& tenant, std::shared_ptr<AnswerMask> mask) {
  queue_.post(tenant, [this, mask = std::move(mask)] {
    if (is_stopped_.load()) return;
    mask->make();
    done_();
  });
}

Status MaskMaker::make(const std::string& tenant, AnswerMask& mask, const std::stop_token& cancel) {
  return queue_.run(tenant, [&] { mask.make(); }, cancel);
}

void MaskMaker::stop() {
  is_stopped_.store(true);
  queue_.stop();
}

}  // namespace zinc_rt
