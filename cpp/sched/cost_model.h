// Learns what a step costs from past steps: base + per_token * tokens + per_pair * pairs. A pair is a token and a
// position that it attends to. Steps are put into classes by their number of tokens and by the positions of these
// tokens in their texts. Each class keeps a mean, so what is known about long prompts outlasts minutes of decoding. The
// coefficients are not negative and minimize the squared relative errors over the classes.
// Thread rule: the step thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace zinc_rt::sched {

// The fraction of a promised time that an estimate may fill, because estimates err.
constexpr double kOfGap = 0.85;

struct StepSize {
  double tokens = 0;
  double pairs = 0;  // (token, itself or a token before it)

  void add(std::uint32_t begin, std::uint32_t n) {  // tokens [begin, begin + n) of a text
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
  // How many tokens of a text, from `begin` on, fit into a step of `size` so that it still ends within `us`.
  std::uint32_t tokens_within(double us, const StepSize& size, std::uint32_t begin) const;

 private:
  struct Class {
    double n = 0;  // steps seen, up to the number that counts
    double tokens = 0, pairs = 0, us = 0;
    std::uint64_t seen = 0;
  };
  void fit();

  static constexpr std::size_t kSizes = 14, kDepths = 6;
  std::array<Class, kSizes * kDepths> classes_{};
  std::array<double, 3> coefficients_{};
  std::uint64_t n_observed_ = 0;
};

}  // namespace zinc_rt::sched
