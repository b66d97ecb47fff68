// Graphs of the fixtures and counts of what is in a graph.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "executor/ring/ring_executor.h"
#include "tests_cpp/base/fixtures.h"

namespace zinc_rt {

inline Prepared prepared(const std::string& model, const std::string& fusion = "1",
                         Activations activations = Activations::kInt8) {
  ExecutorOptions options;
  options.max_slots = 2;
  options.max_context = 64;
  options.fusion = fusion;
  options.activations = activations;
  auto p = prepare(model_path(model), options);
  EXPECT_TRUE(p) << (p ? "" : p.error().message);
  return p ? std::move(*p) : Prepared{};
}

inline std::map<std::string, std::size_t> op_counts(const ir::Graph& graph) {
  std::map<std::string, std::size_t> counts;
  for (const auto& node : graph.nodes())
    if (node.op != ir::Op::BARRIER) ++counts[std::string(to_string(node.op))];
  return counts;
}

}  // namespace zinc_rt
