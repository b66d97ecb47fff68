#include "engine/draft_depth.h"

#include <algorithm>

namespace zinc_rt {
namespace {

// A guessed token that is less likely than this to be of use is not considered.
constexpr double kLeastReach = 1.0 / 64;
// These limit the time of a step with guesses, including the draft model's steps before it. The limit is kLongest times
// the time of the step without guesses, or kLongerUs (in us) more than that time, whichever is longer. The draft
// model's steps count because other streams wait for them too.
constexpr double kLongest = 2, kLongerUs = 10'000;

}  // namespace

double DraftDepth::longest_us(double alone_us) {
  return std::max(kLongest * alone_us, alone_us + kLongerUs);
}

void DraftDepth::reserve(std::size_t n_requests) {
  rows_.reserve(n_requests);
  order_.reserve(n_requests * kMostGuesses);
}

DraftDepth::Choice DraftDepth::choose(std::span<GuessOption> options, std::uint32_t n_rows, std::uint32_t n_most,
                                      const StepPrices& prices) {
  Choice choice;
  choice.us_without = best(options, n_rows, n_most, prices, false);
  choice.us_with = best(options, n_rows, n_most, prices, true);
  return choice;
}

// Returns the least expected time per token, and sets the depths for it.
double DraftDepth::best(std::span<GuessOption> options, std::uint32_t n_rows, std::uint32_t n_most,
                        const StepPrices& prices, bool with_model) {
  rows_.clear();
  order_.clear();
  n_in_step_.fill(0);
  for (GuessOption& option : options) {
    option.depth = 0;
    const bool is_model = with_model && option.prefers_model();
    const double chance = is_model ? option.model_chance : option.own_chance;
    const std::uint32_t n = is_model ? std::min(option.n_model, kMostGuesses) : option.n_own;
    if (n > 0) rows_.push_back({&option, chance, chance, 0, n, is_model});
  }
  const auto is_less = [](const Row& a, const Row& b) { return a.reach < b.reach; };
  std::ranges::make_heap(rows_, is_less);
  const double alone_us = std::max(1.0, prices.model.us(n_rows));
  double tokens = n_rows, draft_us = 0, least = alone_us / tokens;
  std::size_t n_best = 0;
  for (std::uint32_t rows = n_rows + 1; rows <= n_most && !rows_.empty(); ++rows) {
    std::ranges::pop_heap(rows_, is_less);
    Row& next = rows_.back();
    if (next.reach < kLeastReach) break;
    tokens += next.reach;
    order_.push_back(next.is_model ? next.option : nullptr);
    if (next.is_model) {
      std::uint32_t& n = n_in_step_[next.n_taken];
      draft_us += prices.draft.us(n + 1) - (n > 0 ? prices.draft.us(n) : 0);
      ++n;
    }
    next.reach *= next.chance;
    if (++next.n_taken < next.n)
      std::ranges::push_heap(rows_, is_less);
    else
      rows_.pop_back();
    // Within a class of rows the price is a straight line, so only the last number of each class needs to be tried.
    const bool is_last = rows_.empty() || rows == n_most || rows_.front().reach < kLeastReach;
    if (!is_last && !sched::RowPrice::is_last_of_class(rows)) continue;
    const double us = std::max(1.0, prices.model.us(rows)) + draft_us;
    if (us > longest_us(alone_us)) break;
    if (us / tokens < least) least = us / tokens, n_best = order_.size();
  }
  for (std::size_t i = 0; i < n_best; ++i)
    if (order_[i] != nullptr) ++order_[i]->depth;
  return least;
}

}  // namespace zinc_rt
