// Aliasing, dependencies and packets.
#include "lower/lower.h"

#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "graphs.h"
#include "ir/text.h"
#include "lower/alias.h"
#include "lower/join.h"
#include "planning.h"

namespace zinc_rt::lower {
namespace {

using ::testing::HasSubstr;

// No two activations alive in one phase overlap; those that the output part reads stay to its end.
void expect_no_overlap(const ir::Graph& graph, const StepLimits& limits, const ActivationMap& map) {
  const auto output_begin = output_part_begin(graph);
  std::size_t phase = 0;
  std::vector<std::size_t> first(graph.buffers().size(), SIZE_MAX), last(graph.buffers().size(), 0);
  std::vector<int> parts(graph.buffers().size(), 0);
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const auto& node = graph.nodes()[i];
    phase += node.op == ir::Op::BARRIER;
    for (const auto list : {node.ins(), node.outs()})
      for (const auto id : list) {
        if (id < 0) continue;
        const auto b = std::size_t(id);
        first[b] = std::min(first[b], phase), last[b] = std::max(last[b], phase);
        parts[b] |= i < output_begin ? 1 : 2;
      }
  }
  for (std::size_t a = 0; a < graph.buffers().size(); ++a) {
    if (graph.buffers()[a].buffer_class != ir::BufferClass::kActivation || first[a] == SIZE_MAX) continue;
    if (parts[a] == 3) last[a] = phase;
    const auto a_bytes = buffer_bytes(graph.buffers()[a], limits);
    EXPECT_LE(map.offsets[a] + a_bytes, map.arena_bytes);
    EXPECT_EQ(map.offsets[a] % kArenaAlignment, 0u);
    for (std::size_t b = 0; b < a; ++b) {
      if (graph.buffers()[b].buffer_class != ir::BufferClass::kActivation || first[b] == SIZE_MAX) continue;
      if (last[a] < first[b] || last[b] < first[a]) continue;
      EXPECT_TRUE(map.offsets[a] + a_bytes <= map.offsets[b] ||
                  map.offsets[b] + buffer_bytes(graph.buffers()[b], limits) <= map.offsets[a])
          << graph.buffers()[a].name << " and " << graph.buffers()[b].name;
    }
  }
}

TEST(Alias, LiveActivationsOfRealGraphsDoNotOverlap) {
  ZRT_NEED_SHARED_FIXTURES();
  for (const auto* model : {"llama_spm-f32", "llama_k-Q4_K_M"})
    for (const auto* fusion : {"0", "1"}) {
      const auto p = prepared(model, fusion);
      for (const auto* graph : {&p.prefill_low, &p.decode_low}) {
        const auto shared = map_activations(*graph, p.limits), apart = map_activations(*graph, p.limits, false);
        expect_no_overlap(*graph, p.limits, shared);
        expect_no_overlap(*graph, p.limits, apart);
        EXPECT_LT(shared.arena_bytes, apart.arena_bytes / 2);
      }
    }
}

TEST(Alias, NodesOfOnePhaseDoNotShare) {
  const auto graph = *ir::parse(R"(graph "g" stage both
buffer request.x request f32 [tokens, 16]
buffer act.a activation f32 [tokens, 16]
buffer act.b activation f32 [tokens, 16]
buffer act.c activation f32 [tokens, 16]
act.a = ADD(request.x, request.x)
BARRIER
act.b = ADD(act.a, act.a)
act.c = ADD(request.x, request.x)
)");
  const StepLimits limits{4, 1};
  const auto map = map_activations(graph, limits);
  expect_no_overlap(graph, limits, map);
  EXPECT_NE(map.offsets[1], map.offsets[3]);
}

TEST(Alias, WhatAJoinKeepsLiesApartFromWhatItWrites) {
  const auto graph = *ir::parse(R"(graph "g" stage both
buffer request.x request f32 [tokens, 32]
buffer model.w weight q8_0 [32, 32] tensor "t"
buffer act.gate activation f32 [tokens, 32]
buffer act.up activation f32 [tokens, 32]
buffer act.glu activation f32 [tokens, 32]
buffer act.q activation q8a32 [tokens, 32]
buffer act.y activation f32 [tokens, 32]
act.gate = ADD(request.x, request.x)
BARRIER
act.up = ADD(request.x, request.x)
BARRIER
act.glu = GLU(act.gate, act.up) {act=0}
BARRIER
act.q = QUANTIZE(act.glu)
BARRIER
act.y = LINEAR(act.q, model.w, _)
)");
  const StepLimits limits{4, 1};
  const auto is_apart = [&](const ActivationMap& map, const char* a, const char* b) {
    const auto place = [&](const char* name) {
      const auto id = graph.find(name);
      const auto begin = map.offsets[static_cast<std::size_t>(id)];
      return std::pair(begin, begin + buffer_bytes(graph.buffer(id), limits));
    };
    return place(a).first >= place(b).second || place(b).first >= place(a).second;
  };
  constexpr std::string_view kGlu[] = {"GLU gate:a up:b y:h; QUANTIZE x:h y:q; keep a b"},
                             kProduct[] = {"QUANTIZE x:h y:q; LINEAR x:q; keep h"};
  const auto joined = map_activations(graph, limits, true, *find_joins(graph, kGlu));
  EXPECT_TRUE(is_apart(joined, "act.q", "act.gate") && is_apart(joined, "act.q", "act.up"));
  const auto product = map_activations(graph, limits, true, *find_joins(graph, kProduct));
  EXPECT_TRUE(is_apart(product, "act.y", "act.glu"));
  // Without them the memory is used again.
  const auto alone = map_activations(graph, limits);
  EXPECT_FALSE(is_apart(alone, "act.q", "act.gate") && is_apart(alone, "act.q", "act.up"));
  EXPECT_LT(alone.arena_bytes, joined.arena_bytes);
}

TEST(Alias, SizesFollowTheLimits) {
  const auto graph = *ir::parse(
      "graph \"g\" stage both\nbuffer act.a activation f32 [tokens, 16]\n"
      "buffer act.q activation q8a256 [outputs, 512]\nbuffer act.v activation i32 [tokens]\n");
  EXPECT_EQ(buffer_bytes(graph.buffer(0), {10, 3}), 640u);
  EXPECT_EQ(buffer_bytes(graph.buffer(1), {10, 3}), 3u * 2 * 292);
  EXPECT_EQ(buffer_bytes(graph.buffer(2), {10, 3}), 40u);
}

// Packets that read two ranges of a small memory and write a third.
ring::PacketBatch random_batch(std::mt19937& rng) {
  ring::PacketBatch batch;
  for (int n = 0; n < 40; ++n) {
    ring::Packet packet;
    packet.first_binding = static_cast<std::uint32_t>(batch.bindings.size());
    packet.n_bindings = 3, packet.n_inputs = 2;
    for (int i = 0; i < 3; ++i)
      batch.bindings.push_back({static_cast<std::uint32_t>(rng() % 3), rng() % 16 * 4, rng() % 8 + 1});
    batch.packets.push_back(packet);
  }
  batch.body_end = 30;
  ring::find_dependencies(batch);
  return batch;
}

bool overlap(const ring::Binding& x, const ring::Binding& y) {
  return x.bo != 0 && x.bo == y.bo && x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
}
bool conflict(const ring::PacketBatch& batch, std::size_t a, std::size_t b) {
  const auto one = [&](std::size_t p, std::uint32_t i) { return batch.bindings[batch.packets[p].first_binding + i]; };
  for (std::uint32_t i = 0; i < 3; ++i)
    for (std::uint32_t j = 0; j < 3; ++j)
      if ((i == 2 || j == 2) && overlap(one(a, i), one(b, j))) return true;
  return false;
}

TEST(Dependencies, EdgesOrderWhatConflictsAndNothingElse) {
  std::mt19937 rng(1);
  for (int trial = 0; trial < 300; ++trial) {
    const auto batch = random_batch(rng);
    const std::size_t n = batch.packets.size();
    std::vector<std::vector<bool>> waits(n, std::vector<bool>(n));  // [to][from], over others too
    std::uint32_t last = 0;
    for (const ring::Edge& edge : batch.edges) {
      ASSERT_LT(edge.from, edge.to);
      ASSERT_LE(last, edge.to);
      last = edge.to;
      EXPECT_TRUE(conflict(batch, edge.from, edge.to)) << trial;
      const ring::Binding range{edge.bo, edge.offset, edge.bytes};
      for (const auto packet : {edge.from, edge.to}) {
        const auto bindings = std::span(batch.bindings).subspan(batch.packets[packet].first_binding, 3);
        EXPECT_TRUE(std::ranges::any_of(bindings, [&](const auto& b) {
          return b.bo == range.bo && b.offset <= range.offset && range.offset + range.bytes <= b.offset + b.bytes;
        }));
      }
    }
    for (std::size_t to = 0; to < n; ++to)
      for (const ring::Edge& edge : batch.edges) {
        if (edge.to != to) continue;
        waits[to][edge.from] = true;
        for (std::size_t i = 0; i < edge.from; ++i)
          if (waits[edge.from][i]) waits[to][i] = true;
      }
    for (std::size_t to = 0; to < n; ++to)
      for (std::size_t from = 0; from < to; ++from)
        if (conflict(batch, from, to)) {
          EXPECT_TRUE(waits[to][from]) << trial << ": " << from << " " << to;
        }
  }
}

TEST(Dependencies, ValuesGoFromAWriteToTheNext) {
  std::mt19937 rng(2);
  for (int trial = 0; trial < 100; ++trial) {
    const auto batch = random_batch(rng);
    for (std::size_t p = 0; p < batch.packets.size(); ++p)
      for (std::uint32_t i = 0; i < 3; ++i) {
        const auto& binding = batch.bindings[batch.packets[p].first_binding + i];
        if (binding.bo == 0) {
          EXPECT_EQ(binding.value, ring::kNoValue);
          continue;
        }
        const ring::Value& value = batch.values[binding.value];
        EXPECT_EQ(value.at.offset, binding.offset);
        EXPECT_EQ(value.at.bytes, binding.bytes);
        EXPECT_GE(value.last_use, p);
        // Nobody reads it later but those who have its number.
        for (std::size_t q = p + 1; q < batch.packets.size(); ++q)
          for (std::uint32_t j = 0; j < 2; ++j)
            if (batch.bindings[batch.packets[q].first_binding + j].value == binding.value) {
              EXPECT_GE(value.last_use, q);
            }
      }
  }
}

TEST(Dependencies, BarriersOrderEveryEdgeAndNoneIsIdle) {
  std::mt19937 rng(3);
  std::size_t n_barriers = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const auto batch = random_batch(rng);
    const auto before = ring::barriers(batch);
    std::size_t begin = 0, previous = 0;
    for (std::size_t i = 0; i < batch.packets.size(); ++i) {
      if (before[i]) {
        previous = begin, begin = i, ++n_barriers;
        bool is_needed = i == batch.body_end;
        for (std::size_t p = previous; p < i; ++p) is_needed |= conflict(batch, p, i);
        EXPECT_TRUE(is_needed) << trial << " at " << i;
      }
      for (std::size_t p = begin; p < i; ++p) ASSERT_FALSE(conflict(batch, p, i)) << trial << ": " << p << " " << i;
    }
    EXPECT_TRUE(before[batch.body_end]);
    EXPECT_FALSE(before[0]);
  }
  EXPECT_GT(n_barriers, 1000u);
}

// A ring that knows the kernels which are added to it.
PlanningRing<kernel::ZrtFile> empty_ring() {
  return {kernel::KernelTable(kernel::Target::kCpu), kernel::read_zrt};
}

constexpr const char* kLinear = R"(graph "g" stage both
buffer request.x request f32 [tokens, 64]
buffer model.w weight f16 [100, 64] tensor "w"
buffer out.y output f32 [tokens, 100]
out.y = LINEAR(request.x, model.w, _) layer 1
)";
Result<Location> anywhere(ir::BufferId id) {
  return Location{{1, std::uint64_t(id) * 4096, 64}, 128 + std::uint64_t(id)};
}

TEST(Lower, MissingKernelsAreNamed) {
  auto ring = empty_ring();
  KernelCache cache;
  const auto batch = lower(*ir::parse(kLinear), ring, anywhere, cache);
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().code, StatusCode::kUnavailable);
  EXPECT_THAT(batch.error().message, HasSubstr("LINEAR of type f16"));
}

// A kernel is chosen by the type of one weight; the others must have kernels too.
TEST(Lower, EveryWeightNeedsAKernel) {
  auto ring = empty_ring();
  KernelCache cache;
  ring.table.add(ir::Op::RMS_NORM_FUSED_QKV, DType::kQ4_K, {});
  const auto batch = lower(*ir::parse(R"(graph "g" stage both
buffer request.x request f32 [tokens, 256]
buffer model.norm weight f32 [256] tensor "norm"
buffer model.q weight q4_k [64, 256] tensor "q"
buffer model.k weight q4_k [64, 256] tensor "k"
buffer model.v weight iq3_s [64, 256] tensor "blk.0.attn_v.weight"
buffer out.q output f32 [tokens, 64]
buffer out.k output f32 [tokens, 64]
buffer out.v output f32 [tokens, 64]
out.q, out.k, out.v = RMS_NORM_FUSED_QKV(request.x, model.norm, model.q, model.k, model.v, _, _, _) {eps=1e-5, quantize=1}
)"),
                           ring, anywhere, cache);
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().message,
            "[lower] the tier has no kernel for RMS_NORM_FUSED_QKV of type iq3_s (tensor blk.0.attn_v.weight)");
}

kernel::KernelEntry entry(const std::vector<std::string>& symbols) {
  kernel::KernelEntry e;
  e.file.name = "LINEAR";
  e.file.code.resize(4 * symbols.size());
  for (std::size_t i = 0; i < symbols.size(); ++i)
    e.file.symbols.push_back({symbols[i], static_cast<std::uint32_t>(4 * i)});
  return e;
}

TEST(Lower, BakesShapesTypesAndPitches) {
  auto ring = empty_ring();
  KernelCache cache;
  auto e = entry({"dim:n", "dim:k", "dim:m", "dtype:w", "dtype:bias", "pitch:y"});
  e.grid[0] = {"m", 32};
  e.grid[1] = {"n", 1};
  e.lds_bytes = [](const std::uint32_t* s) { return std::uint64_t{s[1]} * 4; };
  ring.table.add(ir::Op::LINEAR, DType::kF16, e);
  const auto graph = *ir::parse(kLinear);
  const auto batch = lower(graph, ring, anywhere, cache);
  ASSERT_TRUE(batch) << batch.error().message;
  ASSERT_EQ(ring.loaded.size(), 1u);
  std::vector<std::uint32_t> values(6);
  std::memcpy(values.data(), ring.loaded[0].code.data(), 24);
  EXPECT_EQ(values, (std::vector<std::uint32_t>{kernel::kSymbolicTokens, 64, 100, std::uint32_t(DType::kF16),
                                                kernel::kAbsent, 130}));
  EXPECT_EQ(ring.loaded[0].lds_bytes, 256u);
  ASSERT_EQ(batch->packets.size(), 1u);
  EXPECT_EQ(batch->packets[0].grid[0].count({7, 0}), 4u);
  EXPECT_EQ(batch->packets[0].grid[1].count({7, 0}), 7u);
  ASSERT_EQ(batch->bindings.size(), 4u);
  EXPECT_EQ(batch->bindings[2].bo, 0u);  // no bias
  EXPECT_EQ(batch->layer_end, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(batch->body_end, 1u);
  ASSERT_TRUE(lower(graph, ring, anywhere, cache));
  EXPECT_EQ(ring.loaded.size(), 1u) << "an equal kernel is loaded once";
}

TEST(Lower, BadSymbolsAndPlaces) {
  const auto error = [](const std::vector<std::string>& symbols, const Locate& locate) {
    auto ring = empty_ring();
    KernelCache cache;
    ring.table.add(ir::Op::LINEAR, DType::kF16, entry(symbols));
    const auto batch = lower(*ir::parse(kLinear), ring, locate, cache);
    return batch ? std::string("lowered") : batch.error().message;
  };
  EXPECT_EQ(error({}, anywhere), "lowered");
  EXPECT_THAT(error({"dim:z"}, anywhere), HasSubstr("variable z"));
  EXPECT_THAT(error({"attr:z"}, anywhere), HasSubstr("variable z"));
  EXPECT_THAT(error({"dtype:z"}, anywhere), HasSubstr("operand z"));
  EXPECT_THAT(error({"size:w"}, anywhere), HasSubstr("unknown symbol size:w"));
  EXPECT_THAT(error({"pitch:w"}, [](ir::BufferId) { return Location{{}, 1ull << 33}; }), HasSubstr("32 bits"));
  EXPECT_THAT(
      error({},
            [](ir::BufferId) -> Result<Location> { return std::unexpected(Error{StatusCode::kInternal, "lost", 0}); }),
      HasSubstr("lost"));
}

TEST(Lower, PartsOfARealBatch) {
  ZRT_NEED_SHARED_FIXTURES();
  ExecutorOptions options;
  options.tier = "t_cpu";
  options.max_slots = 2;
  options.max_context = 64;
  const auto executor = RingExecutor::open(model_path("llama_spm-f32"), options);
  ASSERT_TRUE(executor);
  const auto& batch = (*executor)->batch(ir::Stage::kPrefill);
  ASSERT_EQ(batch.layer_end.size(), (*executor)->config().n_layers);
  EXPECT_TRUE(std::ranges::is_sorted(batch.layer_end));
  EXPECT_LE(batch.layer_end.back(), batch.body_end);
  ASSERT_LT(batch.body_end, batch.packets.size());
  EXPECT_EQ(batch.packets[batch.body_end].op, ir::Op::GATHER_ROWS);
  for (const std::size_t end : batch.layer_end)  // the residual stream is complete where a layer ends
    EXPECT_EQ(batch.packets[end - 1].op, ir::Op::ADD);
}

}  // namespace
}  // namespace zinc_rt::lower
