#include "sched/cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

namespace zinc_rt::sched {
namespace {

constexpr double kCounted = 16;     // the mean of a class weighs at most this many steps
constexpr double kHalfLife = 4096;  // the weight of a class halves during this many steps without a step of that class
// A step counts for at most this multiple of the expected time, because the process may have been descheduled during
// it.
constexpr double kLongestOutlier = 8;
constexpr std::uint64_t kOutliersFrom = 8;  // the limit on long steps applies after this many steps
constexpr std::uint32_t kMost = 1'000'000;
// The subsets of the three terms that fit() tries, in this order, as bits (1: base, 2: tokens, 4: pairs). A later
// subset is used only if its error is below kBetter x the best error so far. If all steps had one size, every subset
// fits equally well, so the first subset is used: a cost per token.
constexpr unsigned kOrder[] = {0b010, 0b011, 0b001, 0b110, 0b100, 0b101, 0b111};
constexpr double kBetter = 0.98;

using Terms = std::array<double, 3>;

struct Sums {
  std::array<Terms, 3> xx{};
  Terms xy{};
  double yy = 0;
};

// Fits the coefficients of the terms in `subset` by least squares. Returns nullopt if the classes do not determine
// them.
std::optional<Terms> solve(const Sums& sums, unsigned subset) {
  std::array<std::size_t, 3> at{};
  std::size_t n = 0;
  for (std::size_t i = 0; i < 3; ++i)
    if ((subset >> i & 1) != 0) at[n++] = i;
  std::array<Terms, 3> a{};
  Terms b{};
  for (std::size_t i = 0; i < n; ++i) {
    b[i] = sums.xy[at[i]];
    for (std::size_t j = 0; j < n; ++j) a[i][j] = sums.xx[at[i]][at[j]];
  }
  // The matrix is symmetric and positive, so that elimination needs no pivoting.
  for (std::size_t i = 0; i < n; ++i) {
    if (a[i][i] <= 1e-6 * sums.xx[at[i]][at[i]]) return std::nullopt;
    for (std::size_t k = i + 1; k < n; ++k) {
      const double f = a[k][i] / a[i][i];
      for (std::size_t j = i; j < n; ++j) a[k][j] -= f * a[i][j];
      b[k] -= f * b[i];
    }
  }
  Terms found{};
  for (std::size_t i = n; i-- > 0;) {
    double value = b[i];
    for (std::size_t j = i + 1; j < n; ++j) value -= a[i][j] * found[at[j]];
    found[at[i]] = value / a[i][i];
  }
  return found;
}

double error_of(const Sums& sums, const Terms& c) {
  double error = sums.yy;
  for (std::size_t i = 0; i < 3; ++i) {
    error -= 2 * c[i] * sums.xy[i];
    for (std::size_t j = 0; j < 3; ++j) error += c[i] * c[j] * sums.xx[i][j];
  }
  return error;
}

// Returns how often a value can be halved before it is below 2, at most n_classes - 1. Classes of steps are numbered by
// it.
std::size_t doublings(double value, std::size_t n_classes) {
  const auto whole = static_cast<std::uint64_t>(std::max(1.0, value));
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(whole)) - 1, n_classes - 1);
}

}  // namespace

void CostModel::observe(const StepSize& size, double us) {
  if (size.tokens <= 0) return;
  us = std::max(us, 1.0);
  if (n_observed_ >= kOutliersFrom) us = std::min(us, kLongestOutlier * std::max(1.0, step_us(size)));
  // Mean positions 0 to 127 are depth 0, up to 511 depth 1, up to 2047 depth 2, and so on.
  const std::size_t depth = doublings(size.pairs / size.tokens / 64, 2 * kDepths) / 2;
  Class& c = classes_[doublings(size.tokens, kSizes) * kDepths + depth];
  c.n = std::min(c.n + 1, kCounted);
  c.tokens += (size.tokens - c.tokens) / c.n;
  c.pairs += (size.pairs - c.pairs) / c.n;
  c.us += (us - c.us) / c.n;
  c.seen = ++n_observed_;
  fit();
}

void CostModel::fit() {
  Sums sums;
  for (const Class& c : classes_) {
    if (c.n == 0) continue;
    // Errors are relative, so that a step of 2 ms and one of 200 ms count alike.
    const double weight = c.n * std::exp2(-static_cast<double>(n_observed_ - c.seen) / kHalfLife) / (c.us * c.us);
    const Terms x{1, c.tokens, c.pairs};
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) sums.xx[i][j] += weight * x[i] * x[j];
      sums.xy[i] += weight * x[i] * c.us;
    }
    sums.yy += weight * c.us * c.us;
  }
  double least = INFINITY;
  for (const unsigned subset : kOrder) {
    const auto found = solve(sums, subset);
    if (!found || std::ranges::min(*found) < 0) continue;
    const double error = error_of(sums, *found) + 1e-9 * sums.yy;
    if (error >= kBetter * least) continue;
    least = error;
    coefficients_ = *found;
  }
}

std::uint32_t CostModel::tokens_within(double us, const StepSize& size, std::uint32_t begin) const {
  const double left = us - step_us(size);
  if (left <= 0) return 0;
  // n tokens from `begin` on cost linear * n + square * n * n.
  const double square = 0.5 * coefficients_[2];
  const double linear = coefficients_[1] + coefficients_[2] * (begin + 0.5);
  const double below = linear + std::sqrt(linear * linear + 4 * square * left);
  if (below * kMost <= 2 * left) return kMost;
  return static_cast<std::uint32_t>(2 * left / below);
}

}  // namespace zinc_rt::sched
