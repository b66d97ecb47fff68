// What a step costs, learned from steps: base + per_token * tokens, by least squares over a sliding weight.
// Thread rule: the step thread.
#pragma once

#include <cstdint>

namespace zinc_rt::sched {

class CostModel {
 public:
  void observe(std::uint32_t n_tokens, double us);
  bool is_known() const { return weight_ > 0; }
  double step_us(double n_tokens) const { return base_ + per_token_ * n_tokens; }
  // Tokens, more than n_tokens, that a step may take to end within us; 0 when n_tokens alone take longer.
  std::uint32_t tokens_within(double us, std::uint32_t n_tokens) const;

 private:
  double weight_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;
  double base_ = 0, per_token_ = 0;
};

}  // namespace zinc_rt::sched
