// CostModel estimates how long a step will take; BatchPlanner calls it before each step and reports each measured step
// to it. The estimate is base + per_token * tokens + per_pair * pairs. A pair is a token together with a position that
// it attends to. Steps are grouped into classes by their number of tokens and by the positions of these tokens in their
// texts. Each class keeps its own mean, so that minutes of decoding do not overwrite what was learned about long
// prompts. The coefficients are never negative and minimize the squared relative errors over the classes.
// Thread rule: the step thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace zinc_rt::sched {

// If a step must end within a time t, the planner fills only kOfGap x t by the estimate, because estimates err.
constexpr double kOfGap = 0.85;

struct StepSize {
  double tokens = 0;
  // Pairs (token, position that it attends to); a token attends to its own position and to all earlier positions.
  double pairs = 0;

  // Adds tokens [begin, begin + n) of a text.
  void add(std::uint32_t begin, std::uint32_t n) {
    tokens += n;
    pairs += n * (begin + 0.5 * (n + 1.0));
  }
};

class CostModel {
 public:
  void observe(const StepSize& size, double us);
  bool is_known() const { return n_observed_ > 0; }
  double step_us(const StepSize& size) const {
    return coefficients_[0] + coefficients_[1] * size.tokens + coefficients_[2] * size.pairs;
  }
  // Returns how many tokens of a text, from position `begin` on, can be added to a step of `size` so that the step
  // still ends within `us`.
  std::uint32_t tokens_within(double us, const StepSize& size, std::uint32_t begin) const;

 private:
  struct Class {
    double n = 0;  // steps in the mean, up to kCounted
    double tokens = 0, pairs = 0, us = 0;
    // Value of n_observed_ when the class was last observed.
    std::uint64_t seen = 0;
  };
  void fit();

  static constexpr std::size_t kSizes = 14, kDepths = 6;
  std::array<Class, kSizes * kDepths> classes_{};
  // base, per_token and per_pair, in us. fit() computes them.
  std::array<double, 3> coefficients_{};
  std::uint64_t n_observed_ = 0;
};

}  // namespace zinc_rt::sched
