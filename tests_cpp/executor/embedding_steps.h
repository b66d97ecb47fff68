// Steps of models with pooling, and settings that change none of their bits.
// Thread rule: plain functions.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "model_fixture.h"

namespace zinc_rt {

// The embeddings of the output rows of a step, row after row.
inline std::vector<float> embed(Executor& executor, TestStep input) {
  std::vector<float> rows;
  input.on_embeddings = [&](std::uint32_t first, std::span<const float> values) {
    EXPECT_EQ(first * executor.info().embedding_dim, rows.size());
    rows.insert(rows.end(), values.begin(), values.end());
  };
  input.on_logits = [](std::uint32_t, std::span<const float>) {
    ADD_FAILURE() << "a model with pooling has no logits";
  };
  StepOutput output;
  const auto status = executor.step(input.view(), output);
  EXPECT_TRUE(status) << status.error().message;
  EXPECT_TRUE(output.tokens.empty());
  return rows;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Threads, kernels and the shape of the graph, two mixtures of them.
inline std::vector<ExecutorOptions> other_settings(const ExecutorOptions& options) {
  std::vector<ExecutorOptions> all;
  for (const int threads : {1, 3}) {
    auto& o = all.emplace_back(options);
    o.threads = threads;
    o.fusion = "0";
    o.aliasing = threads == 1;
    o.repack = threads == 1;
    o.cpu_kernels = threads == 1 ? "ref" : "";
  }
  return all;
}

}  // namespace zinc_rt
