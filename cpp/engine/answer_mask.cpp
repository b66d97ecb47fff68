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
  guess_.clear();
  ahead_.reset();
  state_.store(kStale, std::memory_order_relaxed);
}

// Passes the picked tokens to the matcher. status_ keeps the first error.
void AnswerMask::take_picked() {
  const auto accept = [this](std::int32_t token) -> Status {
    ZRT_TRY(const bool is_allowed, matcher_.accept(token));
    if (!is_allowed) return fail(StatusCode::kInternal, "[grammar] token {} was picked and is not allowed", token);
    return {};
  };
  for (const std::int32_t token : taken_)
    if (status_) note(accept(token));
  taken_.clear();
}

void AnswerMask::note(Status status) {
  if (!status) status_ = std::unexpected(about("output_format", std::move(status).error()));
}

void AnswerMask::make() {
  if (state_.load(std::memory_order_relaxed) == kMade) return;
  const auto begin = std::chrono::steady_clock::now();
  take_picked();
  if (status_) note(matcher_.fill(words_));
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

std::span<const std::int32_t> AnswerMask::guess(std::span<const std::int32_t> proposed) {
  guess_.clear();
  ahead_.reset();
  if (proposed.empty()) return {};
  take_picked();
  if (!status_) return {};
  grammar::Matcher ahead = matcher_;
  for (const std::int32_t token : proposed) {
    const auto is_allowed = ahead.accept(token);
    if (!is_allowed || !*is_allowed) break;
    guess_.push_back(token);
  }
  return guess_;
}

std::span<const std::int32_t> AnswerMask::guess_forced(std::size_t most) {
  guess_.clear();
  ahead_.reset();
  if (!get()) return {};
  if (auto tokens = matcher_.forced(most)) guess_ = std::move(*tokens);
  return guess_;
}

Result<std::span<const std::uint32_t>> AnswerMask::get(std::size_t n) {
  if (n == 0) return get();
  if (!ahead_) {
    ZRT_CHECK_OK(get());
    ahead_ = matcher_;
    n_ahead_ = 0;
  }
  if (n > guess_.size())
    return fail(StatusCode::kInternal, "[grammar] a mask after {} guessed tokens, {} are there", n, guess_.size());
  for (; n_ahead_ < n; ++n_ahead_) {
    ZRT_TRY(const bool is_allowed, ahead_->accept(guess_[n_ahead_]));
    if (!is_allowed)
      return fail(StatusCode::kInternal, "[grammar] token {} was guessed and is not allowed", guess_[n_ahead_]);
    if (words_ahead_.size() <= n_ahead_) words_ahead_.emplace_back(words_.size());
    ZRT_CHECK_OK(ahead_->fill(words_ahead_[n_ahead_]));
  }
  return words_ahead_[n - 1];
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
