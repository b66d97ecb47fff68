// DraftDepth decides how many tokens a draft model should guess for each request before the next step. Each guessed
// token costs twice: a step of the draft model, and a row of the model's own step. So the guesses are ordered by their
// chances, and as many are taken as promise the most tokens per unit of time. Guesses from other sources
// (spec/drafter.h) cost no step of the draft model. They are used where their chance is at least as high, and the draft
// model is not used at all if they alone promise nearly as much.
// Thread rule: one thread at a time. Nothing is allocated for as many requests as reserve() was told.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/speculate.h"
#include "sched/row_price.h"

namespace zinc_rt {

// GuessOption is what could be guessed for a request that decodes in the next step.
struct GuessOption {
  // The guess that costs no step of the draft model: its tokens, 0 if there is none, and the probability that one of
  // them is picked if all before it were.
  std::uint32_t n_own = 0;
  double own_chance = 0;
  // The same of the draft model: how many tokens it may guess at most.
  std::uint32_t n_model = 0;
  double model_chance = 0;
  // The result: how many tokens the draft model should guess. 0: the other guess is used.
  std::uint32_t depth = 0;

  bool prefers_model() const { return n_model > 0 && (n_own == 0 || model_chance > own_chance); }
};

// StepPrices tells what steps cost, in us by their rows.
struct StepPrices {
  const sched::RowPrice& model;
  const sched::RowPrice& draft;
};

class DraftDepth {
 public:
  void reserve(std::size_t n_requests);

  // The expected time in us of each token, of all requests together: without the draft model, and with it.
  struct Choice {
    double us_without = 0, us_with = 0;
    bool pays() const { return kLeastGain * us_with < us_without; }
  };
  // Sets GuessOption::depth to the numbers that promise the most if the draft model is used. The next step has n_rows
  // rows without guesses, and at most n_most rows in all. REQUIRES: prices.model is known.
  Choice choose(std::span<GuessOption> options, std::uint32_t n_rows, std::uint32_t n_most, const StepPrices& prices);

  // Returns the most time in us that guesses may take, the draft model's steps included, in a step that takes alone_us
  // without them.
  static double longest_us(double alone_us);

 private:
  // The draft model must promise at least this gain, because prices and chances are known no better.
  static constexpr double kLeastGain = 1.05;

  // Row is the next guessed token of a request that best() considers.
  struct Row {
    GuessOption* option;
    double reach;  // the probability that the token and all guessed tokens before it are picked
    double chance;
    std::uint32_t n_taken, n;  // guessed tokens of the request before this one, and in all
    bool is_model;
  };
  double best(std::span<GuessOption> options, std::uint32_t n_rows, std::uint32_t n_most, const StepPrices& prices,
              bool with_model);

  // Scratch memory of best(): a heap, the largest reach on top; the option of each row in the order of their taking,
  // null for a row that is not the draft model's; and how many requests each step of the draft model has.
  std::vector<Row> rows_;
  std::vector<GuessOption*> order_;
  std::array<std::uint32_t, kMostGuesses> n_in_step_{};
};

}  // namespace zinc_rt
