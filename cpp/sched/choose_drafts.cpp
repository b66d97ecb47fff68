// Chooses how many guessed tokens (drafts) a step computes. A slot's draft is a chain: its j-th token is of use with
// probability chance^j, because all tokens before it must be right too. So the guessed tokens of all drafts are ordered
// by these probabilities, and the step computes the first n of them. n is the number that promises the most tokens per
// unit of time. Smaller numbers may promise less, because the price of rows grows in stairs (row_price.h). Drafts may
// lengthen a step by no more than prompts may. Fixed drafts (Speculation::is_fixed) and trials (Request::is_trial) are
// taken first, whatever they cost.
#include <algorithm>

#include "sched/batch_planner.h"

namespace zinc_rt::sched {
namespace {

// Prices and chances change. So while no draft seems worth its time, a step sometimes computes kTried guessed tokens
// all the same. Such trials may take at most this fraction of the time of the steps between them.
constexpr std::uint32_t kTried = 4;
constexpr double kTriesCost = 0.01;
// With this many slots, making guesses takes a percent of a small model's step. So after a step in which no guess was
// worth its time, no guesses are made in the next 1, 3, 7, ... steps, at most kLongestPause.
constexpr std::uint32_t kManySlots = 8, kLongestPause = 15;
// Guesses must promise at least this gain, because prices and chances are known no better.
constexpr double kLeastGain = 1.05;
// A step with drafts takes at most this multiple of the step's time without drafts. Longer steps would gain little
// more.
constexpr double kLongest = 4;

}  // namespace

void BatchPlanner::choose_drafts(std::span<Request* const> decoding) {
  drafts_.clear();
  n_paused_ = std::min(n_paused_ + 1, pause_);
  Qos urgent = Qos::kBatch;
  StepSize size;
  std::uint32_t n_guessed = 0;
  auto n_rows = static_cast<std::uint32_t>(decoding.size());
  std::uint32_t n_free = options_.chunk_cap - std::min(options_.chunk_cap, n_rows);
  double tokens = n_rows;
  for (Request* r : decoding) {
    size.add(r->n_done, 1);
    urgent = std::min(urgent, r->params.qos);
    r->n_drafts = 0;
    const std::uint32_t n = r->tokens.n_guessed();
    if (n == 0) continue;
    if (!r->params.speculation.is_fixed && !r->is_trial) {
      n_guessed += n;
      drafts_.push_back({r, r->draft_chance, 0});
      continue;
    }
    r->n_drafts = std::min(n, n_free);
    n_free -= r->n_drafts;
    n_rows += r->n_drafts;
    size.add(r->n_done + 1, r->n_drafts);
    double chance = 1;
    for (std::uint32_t i = 0; i < r->n_drafts; ++i) tokens += chance *= r->draft_chance;
    r->tokens.cut_guess(r->n_drafts);
  }
  if (drafts_.empty()) return;
  const std::uint32_t n_most = row_price_.is_known() ? std::min(n_guessed, n_free) : 0;
  const auto is_less = [](const DraftRow& a, const DraftRow& b) { return a.chance < b.chance; };
  const double alone_us = std::max(1.0, row_price_.us(n_rows));
  const double longest_us = std::min(kLongest * alone_us, prompt_budget(urgent, n_rows, cost_.step_us(size)));
  double best = kLeastGain * tokens / alone_us;
  std::uint32_t n_best = 0;
  std::ranges::make_heap(drafts_, is_less);
  order_.clear();
  for (std::uint32_t n = 1; n <= n_most; ++n) {
    std::ranges::pop_heap(drafts_, is_less);
    DraftRow& next = drafts_.back();
    tokens += next.chance;
    order_.push_back(next.request);
    // Within a class of rows the price is a straight line, so only the last number of each class needs to be tried.
    if (n == n_most || RowPrice::is_last_of_class(n_rows + n)) {
      const double us = std::max(1.0, row_price_.us(n_rows + n));
      if (us > longest_us) break;
      if (tokens / us > best) best = tokens / us, n_best = n;
    }
    if (++next.n < next.request->tokens.n_guessed())
      next.chance *= next.request->draft_chance;
    else
      next.chance = -1;  // the request has no further guessed token
    std::ranges::push_heap(drafts_, is_less);
  }
  if (n_best == 0 && n_most > 0) {
    const auto n_tried = std::min<std::uint32_t>(kTried, static_cast<std::uint32_t>(order_.size()));
    us_without_ += alone_us * (1 + n_paused_);
    if (row_price_.us(n_rows + n_tried) - alone_us < kTriesCost * us_without_) n_best = n_tried;
  }
  if (n_best > 0) us_without_ = 0;
  n_paused_ = 0;
  pause_ = n_best > 0 || decoding.size() < kManySlots ? 0 : std::min(2 * pause_ + 1, kLongestPause);
  for (std::uint32_t i = 0; i < n_best; ++i) ++order_[i]->n_drafts;
  for (const DraftRow& d : drafts_) d.request->tokens.cut_guess(d.request->n_drafts);
}

}  // namespace zinc_rt::sched
