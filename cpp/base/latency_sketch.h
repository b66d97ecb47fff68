// Records latencies in fixed memory and computes quantiles, for metrics and benchmarks. It is a log-linear histogram
// (like HDR histograms) with 32 buckets per power of two, so a quantile is within 1/64 of a recorded value. Two
// sketches can be merged.
// Thread rule: not synchronized; the owner locks.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace zinc_rt {

class LatencySketch {
 public:
  // Latencies from 1 us to 1 h are recorded. Values outside are recorded as the nearest limit.
  static constexpr double kMinMs = 1e-3, kMaxMs = 3.6e6;
  static constexpr double kRelativeError = 1.0 / 64;

  void record(double ms);  // records a latency; NaN counts as kMinMs
  void merge(const LatencySketch& other);
  // Returns the value of rank ceil(p * count), but at least rank 1. Results for the smallest and the largest value are
  // exact. Returns 0 if nothing was recorded.
  double quantile(double p) const;

  std::uint64_t count() const { return count_; }
  double sum_ms() const { return sum_; }
  double min_ms() const { return min_; }  // returns 0 if nothing was recorded
  double max_ms() const { return max_; }

 private:
  // The histogram index of a value is its exponent followed by the upper 5 bits of its mantissa, so there are 32
  // intervals per power of two. Positive doubles are ordered like their bits read as integers, so larger values have
  // larger indexes.
  static constexpr int kShift = 52 - 5;
  static constexpr std::uint64_t kFirst = std::bit_cast<std::uint64_t>(kMinMs) >> kShift;
  static constexpr std::size_t kBuckets = (std::bit_cast<std::uint64_t>(kMaxMs) >> kShift) - kFirst + 1;

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t count_ = 0;
  double sum_ = 0, min_ = 0, max_ = 0;
};
static_assert(sizeof(LatencySketch) < 9 * 1024);

}  // namespace zinc_rt
