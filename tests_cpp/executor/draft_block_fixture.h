// What tests of draft blocks share: references, and steps with features.
#pragma once

#include <gmock/gmock.h>

#include "model_fixture.h"
#include "ring/registry.h"

namespace zinc_rt {

inline ExecutorOptions float_options(ModelPart part) {
  auto options = small_options();
  options.part = part;
  options.gives_features = part == ModelPart::kModel;
  options.activations = Activations::kF32;
  options.kv_type = find_kv_type("f32");
  return options;
}

// Reads a tensor of the reference (tests_py/make_mtp_fixture.py, make_eagle3_fixture.py).
inline std::vector<float> reference(const Weights& file, std::string_view name) {
  const auto data = file.find(name)->data;
  std::vector<float> values(data.size() / sizeof(float));
  std::memcpy(values.data(), data.data(), data.size());
  return values;
}

inline float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float most = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

struct FeatureResults {
  Outcome outcome;
  std::vector<float> features;
};

// Runs tokens from position 0 on, `chunk` a step. For a block, features has a row per token.
inline FeatureResults run(Executor& executor, const std::vector<std::int32_t>& ids, std::size_t chunk,
                          const std::vector<float>& features = {}) {
  FeatureResults results;
  const std::size_t dim = features.size() / ids.size();
  for (std::size_t first = 0; first < ids.size(); first += chunk) {
    const std::size_t n = std::min(chunk, ids.size() - first);
    TestStep input;
    append(input, ids, first, n, 0, pages_from(0));
    const auto* row = features.data() + first * dim;
    input.features.assign(row, row + n * dim);
    input.on_features = [&](std::span<const float> rows) {
      results.features.insert(results.features.end(), rows.begin(), rows.end());
    };
    step(executor, std::move(input), results.outcome);
  }
  return results;
}

// Expects the results of T-CPU from every tier that can run here, or the name of the op that it lacks.
inline void expect_bits_of_cpu_on_other_tiers(const std::string& path, ExecutorOptions options,
                                              const std::vector<std::int32_t>& ids,
                                              const std::vector<float>& features = {}) {
  const auto on_cpu = RingExecutor::open(path, options);
  ASSERT_TRUE(on_cpu) << on_cpu.error().message;
  const auto wanted = run(**on_cpu, ids, 9, features);
  std::size_t n_tiers = 0;
  for (const ring::Tier* tier : ring::tiers()) {
    if (tier->name == "t_cpu" || tier->name == "null" || !tier->unavailable_reason().empty()) continue;
    SCOPED_TRACE(tier->name);
    ++n_tiers;
    options.tier = tier->name;
    const auto other = RingExecutor::open(path, options);
    if (!other) {
      EXPECT_THAT(other.error().message, ::testing::HasSubstr("no kernel for CONCAT"));
      continue;
    }
    for (const std::size_t chunk : {1, 9}) {
      const auto got = run(**other, ids, chunk, features);
      EXPECT_EQ(got.outcome, wanted.outcome) << chunk;
      EXPECT_EQ(got.features, wanted.features) << chunk;
    }
  }
  if (n_tiers == 0) GTEST_SKIP() << "no tier but T-CPU here";
}

}  // namespace zinc_rt
