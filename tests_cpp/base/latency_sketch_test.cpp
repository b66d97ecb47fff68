#include "base/latency_sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace zinc_rt {
namespace {

constexpr double kQuantiles[] = {0, 0.001, 0.1, 0.25, 0.5, 0.9, 0.99, 0.999, 1};

double exact(const std::vector<double>& sorted, double p) {
  const double rank = std::max(1.0, std::ceil(p * static_cast<double>(sorted.size())));
  return sorted[static_cast<std::size_t>(rank) - 1];
}

using Draw = std::function<double(std::mt19937_64&)>;
struct Distribution {
  const char* name;
  Draw draw;
};
std::vector<Distribution> distributions() {
  return {
      {"uniform", std::uniform_real_distribution(0.5, 80.0)},
      {"exponential", [](auto& g) { return 0.01 + std::exponential_distribution(0.02)(g); }},
      {"lognormal", std::lognormal_distribution(2.0, 1.5)},
      {"pareto", [](auto& g) { return std::pow(1 - std::uniform_real_distribution()(g), -1.2); }},
      {"two peaks", [](auto& g) { return g() % 20 ? 12.0 + static_cast<double>(g() % 3) : 900.0; }},
      {"microseconds", [](auto& g) { return static_cast<double>(1 + g() % 50) * 1e-3; }},
      {"the whole range", [](auto& g) { return std::pow(10.0, std::uniform_real_distribution(-3.0, 6.5)(g)); }},
      {"one value", [](auto&) { return 17.3; }},
  };
}

TEST(LatencySketch, QuantilesOfSeveralDistributions) {
  for (const auto& [name, draw] : distributions()) {
    for (const std::size_t n : {1u, 2u, 10u, 1000u, 100'000u}) {
      std::mt19937_64 random(n);
      LatencySketch sketch;
      std::vector<double> values(n);
      for (double& v : values)
        sketch.record(v = std::clamp(draw(random), LatencySketch::kMinMs, LatencySketch::kMaxMs));
      std::ranges::sort(values);
      EXPECT_EQ(sketch.count(), n);
      EXPECT_EQ(sketch.quantile(0), values.front());
      EXPECT_EQ(sketch.quantile(1), values.back());
      for (const double p : kQuantiles) {
        const double wanted = exact(values, p);
        // One part in a million of slack for values that lie on the edge of a bucket.
        EXPECT_NEAR(sketch.quantile(p), wanted, wanted * LatencySketch::kRelativeError * (1 + 1e-6))
            << name << ", " << n << " values, quantile " << p;
      }
    }
  }
}

TEST(LatencySketch, EveryBucketKeepsTheBound) {
  for (double ms = LatencySketch::kMinMs; ms < LatencySketch::kMaxMs; ms *= 1.003) {
    LatencySketch sketch;
    sketch.record(LatencySketch::kMinMs);
    sketch.record(ms);
    sketch.record(LatencySketch::kMaxMs);
    ASSERT_NEAR(sketch.quantile(0.5), ms, ms * LatencySketch::kRelativeError * (1 + 1e-6));
  }
}

TEST(LatencySketch, QuantilesGrowWithP) {
  std::mt19937_64 random(3);
  LatencySketch sketch;
  for (int i = 0; i < 5000; ++i) sketch.record(std::lognormal_distribution(1.0, 2.0)(random));
  double last = 0;
  for (int i = 0; i <= 1000; ++i) {
    const double value = sketch.quantile(i / 1000.0);
    ASSERT_GE(value, last);
    last = value;
  }
}

TEST(LatencySketch, MergedIsAsIfAllWereRecordedInOne) {
  std::mt19937_64 random(7);
  LatencySketch all, merged;
  for (const auto& [name, draw] : distributions()) {
    LatencySketch part;
    for (int i = 0; i < 3000; ++i) {
      const double ms = draw(random);
      part.record(ms);
      all.record(ms);
    }
    merged.merge(part);
  }
  merged.merge(LatencySketch{});
  EXPECT_EQ(merged.count(), all.count());
  EXPECT_EQ(merged.min_ms(), all.min_ms());
  EXPECT_EQ(merged.max_ms(), all.max_ms());
  EXPECT_NEAR(merged.sum_ms(), all.sum_ms(), 1e-9 * all.sum_ms());
  for (int i = 0; i <= 1000; ++i) ASSERT_EQ(merged.quantile(i / 1000.0), all.quantile(i / 1000.0)) << i;

  LatencySketch empty;
  empty.merge(all);
  EXPECT_EQ(empty.quantile(0.5), all.quantile(0.5));
  EXPECT_EQ(empty.min_ms(), all.min_ms());
}

TEST(LatencySketch, Extremes) {
  LatencySketch sketch;
  EXPECT_EQ(sketch.quantile(0.5), 0);
  EXPECT_EQ(sketch.max_ms(), 0);
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const double ms : {0.0, -0.0, -1.0, -infinity, nan, 1e-300}) sketch.record(ms);
  EXPECT_EQ(sketch.quantile(0.5), LatencySketch::kMinMs);
  EXPECT_EQ(sketch.max_ms(), LatencySketch::kMinMs);
  for (int i = 0; i < 20; ++i) sketch.record(i % 2 ? infinity : 1e300);
  EXPECT_EQ(sketch.count(), 26u);
  EXPECT_NEAR(sketch.quantile(0.5), LatencySketch::kMaxMs, LatencySketch::kMaxMs * LatencySketch::kRelativeError);
  EXPECT_EQ(sketch.quantile(1), LatencySketch::kMaxMs);
  for (const double p : {-1.0, -infinity, nan}) EXPECT_EQ(sketch.quantile(p), LatencySketch::kMinMs);
  for (const double p : {2.0, infinity}) EXPECT_EQ(sketch.quantile(p), LatencySketch::kMaxMs);
}

}  // namespace
}  // namespace zinc_rt
