// For tests of plans: a ring that has kernels and no memory, and texts of graphs lowered for it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/text.h"
#include "lower/alias.h"
#include "lower/lower.h"

namespace zinc_rt {

// What lowering asks of a ring. LoadedKernel: what the tier makes of a kernel's file.
template <class LoadedKernel>
class PlanningRing final : public ring::Ring {
 public:
  using Read = std::function<Result<LoadedKernel>(std::span<const std::byte> zrt)>;
  PlanningRing(kernel::KernelTable kernels, Read read, std::span<const std::string_view> joins = {})
      : table(std::move(kernels)), read_(std::move(read)), joins_(joins) {}

  Result<ring::Fence> submit(const ring::Submission&) override { return none(); }
  Status wait(ring::Fence) override { return none(); }
  Result<std::span<std::byte>> map(const ring::Buffer&) override { return none(); }
  Result<ring::Buffer> alloc_bo(std::uint64_t, Heap) override { return none(); }
  void free_bo(const ring::Buffer&) override {}
  Result<ring::Kernel> load_kernel(std::span<const std::byte> zrt) override {
    ZRT_TRY(auto kernel, read_(zrt));
    loaded.push_back(std::move(kernel));
    return ring::Kernel{static_cast<std::uint32_t>(loaded.size())};
  }
  const kernel::KernelTable& kernels() const override { return table; }
  std::span<const std::string_view> joins() const override { return joins_; }
  ring::RingStats stats() const override { return {}; }
  std::string describe() const override { return "plans alone"; }

  kernel::KernelTable table;
  std::vector<LoadedKernel> loaded;

 private:
  static std::unexpected<Error> none() { return fail(StatusCode::kUnavailable, "[planning] no memory"); }
  Read read_;
  std::span<const std::string_view> joins_;
};

struct LoweredText {
  ir::Graph graph;
  ring::PacketBatch batch;
};

// The graph lowered for a step of up to `rows` tokens, each buffer in memory of its own. Nothing: the test has failed.
inline std::optional<LoweredText> lowered(std::string_view text, std::uint32_t rows, ring::Ring& ring) {
  auto graph = ir::parse(text);
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().message);
  if (!graph) return std::nullopt;
  lower::KernelCache cache;
  const auto locate = [&](ir::BufferId id) -> Result<lower::Location> {
    const ir::Buffer& buffer = graph->buffer(id);
    const std::uint64_t bytes = lower::buffer_bytes(buffer, {rows, rows});
    const std::uint64_t entries = buffer.dims[0].is_const() ? buffer.dims[0].n : rows;
    return lower::Location{{static_cast<std::uint32_t>(id) + 1, 0, bytes}, bytes / entries};
  };
  auto batch = lower::lower(*graph, ring, locate, cache);
  EXPECT_TRUE(batch) << (batch ? "" : batch.error().message);
  if (!batch) return std::nullopt;
  return LoweredText{std::move(*graph), std::move(*batch)};
}

}  // namespace zinc_rt
