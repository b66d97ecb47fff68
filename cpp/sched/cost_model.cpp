#include "sched/cost_model.h"

#include <algorithm>

namespace zinc_rt::sched {
namespace {

constexpr double kKept = 0.98;         // of the weight of earlier steps: some fifty of them count
constexpr double kLongestOutlier = 8;  // times what was expected: a step that was descheduled teaches no more than this

}  // namespace

void CostModel::observe(std::uint32_t n_tokens, double us) {
  const double x = n_tokens;
  if (weight_ > 8) us = std::min(us, kLongestOutlier * std::max(1.0, step_us(x)));
  weight_ = weight_ * kKept + 1;
  x_ = x_ * kKept + x;
  y_ = y_ * kKept + us;
  xx_ = xx_ * kKept + x * x;
  xy_ = xy_ * kKept + x * us;
  const double spread = weight_ * xx_ - x_ * x_;  // 0 while all steps had as many tokens
  per_token_ = spread > 1e-3 * weight_ * weight_ ? (weight_ * xy_ - x_ * y_) / spread : y_ / x_;
  per_token_ = std::clamp(per_token_, 0.0, y_ / x_);  // neither part is negative
  base_ = (y_ - per_token_ * x_) / weight_;
}

std::uint32_t CostModel::tokens_within(double us, std::uint32_t n_tokens) const {
  const double left = us - step_us(n_tokens);
  if (left <= 0) return 0;
  if (per_token_ * 1e6 <= left) return 1000000;
  return static_cast<std::uint32_t>(left / per_token_);
}

}  // namespace zinc_rt::sched
