#include "base/latency_sketch.h"

#include <algorithm>
#include <cmath>

namespace zinc_rt {

void LatencySketch::record(double ms) {
  ms = ms >= kMinMs ? std::min(ms, kMaxMs) : kMinMs;
  ++counts_[(std::bit_cast<std::uint64_t>(ms) >> kShift) - kFirst];
  min_ = count_ == 0 ? ms : std::min(min_, ms);
  max_ = std::max(max_, ms);
  sum_ += ms;
  ++count_;
}

void LatencySketch::merge(const LatencySketch& other) {
  if (other.count_ == 0) return;
  for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
  count_ += other.count_;
}

double LatencySketch::quantile(double p) const {
  if (count_ == 0) return 0;
  const double wanted = std::ceil(p * static_cast<double>(count_));
  if (!(wanted > 1)) return min_;
  if (wanted >= static_cast<double>(count_)) return max_;
  const auto rank = static_cast<std::uint64_t>(wanted);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += counts_[i];
    if (seen < rank) continue;
    const std::uint64_t middle = ((kFirst + i) << kShift) + (std::uint64_t{1} << (kShift - 1));
    return std::clamp(std::bit_cast<double>(middle), min_, max_);
  }
  return max_;
}

}  // namespace zinc_rt
