// Chooses how many guessed tokens (drafts) a step computes. A slot's draft is a chain: its j-th token is of use with
// probability chance^j, because all tokens before it must be right too. So the guessed tokens of all drafts are ordered
// by these probabilities, and the step computes the first n of them. n is the number that promises the most tokens per
// unit of time. Smaller numbers may promise less, because the price of rows grows in stairs (row_price.h). Drafts of a
// class may lengthen a step by no more than prompts of that class may. Fixed drafts (Speculation::is_fixed) and trials (Request::is_trial) are
// taken first, whatever they cost.
#include <algorithm>
#include <optional>

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

// Returns how many drafted tokens, at most n_most, fit a step of n_rows rows that may take `us`. Rows of which no step was
// seen yet cost row_us each in any case, because the price of rows alone says too little about them.
std::uint32_t BatchPlanner::drafts_within(double us, std::uint32_t n_rows, std::uint32_t n_most, double row_us) const {
  const std::uint32_t seen = std::max(row_price_.most_seen(), n_rows);
  const double seen_us = row_price_.us(seen);
  std::uint32_t within = 0;
  for (std::uint32_t n = 1; n <= n_most; ++n) {
    const std::uint32_t rows = n_rows + n;
    // Up to the last number of a class, because within a class the price is a straight line.
    if (n < n_most && rows != seen && !RowPrice::is_last_of_class(rows)) continue;
    const double least_us = rows > seen ? seen_us + row_us * (rows - seen) : 0;
    if (std::max(row_price_.us(rows), least_us) > us) break;
    within = n;
  }
  if (within == n_most || n_rows + within < seen) return within;
  // Between two ends of classes beyond those that were seen, as many rows as fit.
  const double room_us = us - std::max(row_price_.us(n_rows + within), seen_us + row_us * (n_rows + within - seen));
  return row_us > 0 ? std::min(n_most, within + static_cast<std::uint32_t>(std::max(0.0, room_us / row_us))) : within;
}

void BatchPlanner::choose_drafts(std::span<Request* const> decoding) {
  drafts_.clear();
  n_paused_ = std::min(n_paused_ + 1, pause_);
  Qos urgent = Qos::kBatch;
  StepSize size, longer;  // longer: with a row more, of the longest text
  std::uint32_t n_guessed = 0, longest_text = 0;
  auto n_rows = static_cast<std::uint32_t>(decoding.size());
  std::uint32_t n_free = options_.chunk_cap - std::min(options_.chunk_cap, n_rows);
  double tokens = n_rows;
  for (Request* r : decoding) {
    size.add(r->n_done, 1);
    longest_text = std::max(longest_text, r->n_done);
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
  longer = size;
  longer.add(longest_text, 1);
  const double row_us = cost_.is_known() ? cost_.step_us(longer) - cost_.step_us(size) : 0;
  // How many drafted tokens the step may have when one of this class is added.
  std::optional<std::uint32_t> within[kQosCount];
  for (const DraftRow& d : drafts_) {
    const Qos qos = d.request->params.qos;
    auto& most = within[static_cast<std::size_t>(qos)];
    if (most) continue;
    const double decode_us = cost_.step_us(size);
    const double budget =
        qos > urgent ? budget_beside(urgent, qos, decode_us) : prompt_budget(urgent, n_rows, decode_us);
    most = drafts_within(std::min(kLongest * alone_us, budget), n_rows, n_most, row_us);
  }
  double best = kLeastGain * tokens / alone_us;
  std::uint32_t n_best = 0;
  std::ranges::make_heap(drafts_, is_less);
  order_.clear();
  const auto try_number = [&](std::uint32_t n) {
    const double us = std::max(1.0, row_price_.us(n_rows + n));
    if (tokens / us > best) best = tokens / us, n_best = n;
  };
  while (order_.size() < n_most && drafts_.front().chance >= 0) {
    std::ranges::pop_heap(drafts_, is_less);
    DraftRow& next = drafts_.back();
    if (order_.size() < *within[static_cast<std::size_t>(next.request->params.qos)]) {
      tokens += next.chance;
      order_.push_back(next.request);
      // Within a class of rows the price is a straight line, so only the last number of each class needs to be tried.
      const auto n = static_cast<std::uint32_t>(order_.size());
      if (RowPrice::is_last_of_class(n_rows + n)) try_number(n);
      next.chance = ++next.n < next.request->tokens.n_guessed() ? next.chance * next.request->draft_chance : -1;
    } else {
      next.chance = -1;
    }
    std::ranges::push_heap(drafts_, is_less);  // a chance below 0: the request gets no further row
  }
  try_number(static_cast<std::uint32_t>(order_.size()));
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
