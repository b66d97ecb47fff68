// A graph of a few ops run on a ring, with memory that is given and read by the names of its buffers.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver_counts.h"
#include "lower/alias.h"
#include "lower/lower.h"
#include "ring/registry.h"

namespace zinc_rt {

using Memory = std::map<std::string, std::vector<std::byte>>;

// Returns the types of weights for which the tier has kernels.
inline std::vector<DType> weights_of(const ring::Tier& tier) {
  const auto ring = tier.make_ring({.threads = 1, .cpu_kernels = {}});
  EXPECT_TRUE(ring) << tier.name;
  std::vector<DType> types = ring ? weight_types() : std::vector<DType>();
  std::erase_if(types, [&](DType type) { return (*ring)->kernels().find(ir::Op::LINEAR, type) == nullptr; });
  return types;
}

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

inline ir::BufferId declare(ir::Graph& graph, const char* name, ir::BufferClass buffer_class, DType dtype,
                            std::initializer_list<ir::Dim> dims) {
  ir::Buffer buffer;
  buffer.name = name;
  buffer.buffer_class = buffer_class;
  buffer.dtype = dtype;
  for (const auto dim : dims) buffer.dims[buffer.rank++] = dim;
  return graph.add_buffer(std::move(buffer));
}

// A node and a barrier after it.
inline ir::Node& add_node(ir::Graph& graph, ir::Op op, std::initializer_list<ir::BufferId> inputs,
                          std::initializer_list<ir::BufferId> outputs) {
  ir::Node node;
  node.op = op;
  for (const auto id : inputs) node.inputs[node.n_inputs++] = id;
  for (const auto id : outputs) node.outputs[node.n_outputs++] = id;
  graph.add_node(node);
  graph.add_node({});
  return graph.mutable_nodes()[graph.nodes().size() - 2];
}

// The attributes of a node of attention, from a shape that has them as members but for the scale.
template <class Shape>
void set_attention(ir::Node& node, const Shape& s) {
  ir::set_attr(node, "n_heads", s.n_heads);
  ir::set_attr(node, "n_kv_heads", s.n_kv_heads);
  ir::set_attr(node, "head_dim", s.head_dim);
  ir::set_attr(node, "v_head_dim", s.v_head_dim);
  ir::set_attr(node, "scale", 0.17f);
  ir::set_attr(node, "window", s.window);
  ir::set_attr(node, "softcap", s.softcap);
}

// What the buffers `wanted` hold after a step of n_tokens, `given` before it. Matrices are uploaded as weights.
inline Memory run_graph(const ring::Tier& tier, const ir::Graph& graph, std::uint32_t n_tokens, const Memory& given,
                        std::initializer_list<const char*> wanted, bool fast = false) {
  auto made = tier.make_ring({.threads = 2, .cpu_kernels = {}, .fast = fast});
  EXPECT_TRUE(made);
  auto& ring = **made;
  const lower::StepLimits limits{n_tokens, 1};
  std::vector<ring::Buffer> buffers;
  for (const ir::Buffer& buffer : graph.buffers()) {
    auto bo = ring.alloc_bo(lower::buffer_bytes(buffer, limits), Heap::kDeviceLocal);
    EXPECT_TRUE(bo);
    buffers.push_back(*bo);
    const auto bytes = given.find(buffer.name);
    if (bytes == given.end()) continue;
    if (buffer.buffer_class != ir::BufferClass::kWeight || buffer.rank < 2) {
      EXPECT_TRUE(ring.write(*bo, 0, bytes->second));
      continue;
    }
    const std::uint32_t n_matrices = buffer.rank == 2 ? 1 : buffer.dims[0].n, rows = buffer.dims[buffer.rank - 2u].n,
                        k = buffer.dims[buffer.rank - 1u].n;
    const std::size_t matrix = rows * row_bytes(buffer.dtype, k);
    for (std::size_t i = 0; i < n_matrices; ++i)
      EXPECT_TRUE(
          ring.upload(*bo, i * matrix, {buffer.dtype, rows, k, std::span(bytes->second).subspan(i * matrix, matrix)}));
  }
  lower::KernelCache cache;
  const auto batch = lower::lower(
      graph, ring,
      [&](ir::BufferId id) -> Result<lower::Location> {
        const auto& bo = buffers[static_cast<std::size_t>(id)];
        const ir::Dim rows = graph.buffer(id).dims[0];
        return lower::Location{{bo.id, 0, bo.bytes}, bo.bytes / (rows.is_const() ? rows.n : n_tokens)};
      },
      cache);
  EXPECT_TRUE(batch) << (batch ? "" : batch.error().message);
  if (!batch) return {};
  if (const std::uint64_t bytes = ring.scratch_bytes(*batch, {n_tokens, 1}); bytes > 0) {
    const auto scratch = ring.alloc_bo(bytes, Heap::kDeviceLocal);
    EXPECT_TRUE(scratch && ring.use_scratch(*scratch));
  }
  // NVIDIA's driver takes memory for code meanwhile.
  const auto free_bytes = [&] {
    const auto memory = find_count<CallCount>("cuda_sim_calls") != nullptr ? ring.device_memory() : std::nullopt;
    return memory && *memory ? (*memory)->free : 0;
  };
  const std::uint64_t free_before = free_bytes();
  const auto fence = ring.submit({&*batch, 0, static_cast<std::uint32_t>(batch->packets.size()), {n_tokens, 1}});
  EXPECT_TRUE(fence) << (fence ? "" : fence.error().message);
  if (!fence || !ring.wait(*fence)) return {};
  EXPECT_EQ(free_bytes(), free_before) << "what scratch_bytes says is not enough";
  Memory read;
  for (const auto* name : wanted) {
    const auto& bo = buffers[static_cast<std::size_t>(graph.find(name))];
    const auto bytes = ring.read(bo, 0, bo.bytes);
    EXPECT_TRUE(bytes);
    if (bytes) read[name].assign(bytes->begin(), bytes->end());
  }
  return read;
}

// Words of 4 bytes that differ, or are a NaN's, which may carry other bits on other devices.
inline std::size_t n_different(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  if (a.size() != b.size() || a.empty()) return ~std::size_t{0};
  std::size_t n = 0;
  for (std::size_t i = 0; i + 4 <= a.size(); i += 4) {
    float value;
    std::memcpy(&value, a.data() + i, 4);
    n += value != value || std::memcmp(a.data() + i, b.data() + i, 4) != 0 ? 1 : 0;
  }
  return n;
}

// Words that differ, but for NaN of other bits.
inline std::size_t n_different_numbers(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  if (a.size() != b.size() || a.empty()) return ~std::size_t{0};
  std::size_t n = 0;
  for (std::size_t i = 0; i + 4 <= a.size(); i += 4) {
    float x, y;
    std::memcpy(&x, a.data() + i, 4);
    std::memcpy(&y, b.data() + i, 4);
    n += std::memcmp(&x, &y, 4) != 0 && (x == x || y == y) ? 1 : 0;
  }
  return n;
}

inline std::vector<const ring::Tier*> other_tiers() {
  std::vector<const ring::Tier*> others;
  for (const ring::Tier* tier : ring::tiers())
    if (tier->name != "t_cpu" && tier->name != "null" && tier->unavailable_reason().empty()) others.push_back(tier);
  return others;
}

// Tests of graphs on tiers.
class TierGraphTest : public ::testing::TestWithParam<const ring::Tier*> {
 protected:
  // While a ring lives the context of its device does, so no graph waits for a new one.
  static void SetUpTestSuite() {
    for (const auto* tier : other_tiers())
      if (auto made = tier->make_ring({.threads = 2, .cpu_kernels = {}})) kept_.push_back(std::move(*made));
  }
  static void TearDownTestSuite() { kept_.clear(); }

 private:
  static inline std::vector<std::unique_ptr<ring::Ring>> kept_;
};

}  // namespace zinc_rt
