// Aliasing, barriers and packets.
#include "lower/lower.h"

#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "graphs.h"
#include "ir/text.h"
#include "lower/alias.h"
#include "lower/barriers.h"

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
  ZRT_NEED_FIXTURES();
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

// A tier may do at once what makes gate and up, and GLU; GLU and QUANTIZE; QUANTIZE and what reads its rows.
TEST(Alias, JoinedNodesLieApart) {
  const auto graph = *ir::parse(R"(graph "g" stage both
buffer request.x request f32 [tokens, 32]
buffer model.w weight q8_0 [32, 32] tensor "t"
buffer act.x activation f32 [tokens, 32]
buffer act.gate activation f32 [tokens, 32]
buffer act.up activation f32 [tokens, 32]
buffer act.glu activation f32 [tokens, 32]
buffer act.q activation q8a32 [tokens, 32]
buffer act.y activation f32 [tokens, 32]
act.x = ADD(request.x, request.x)
BARRIER
act.gate = ADD(act.x, act.x)
BARRIER
act.up = ADD(act.x, act.x)
BARRIER
act.glu = GLU(act.gate, act.up) {act=0}
BARRIER
act.q = QUANTIZE(act.glu)
BARRIER
act.y = LINEAR(act.q, model.w, _)
)");
  const StepLimits limits{4, 1};
  const auto map = map_activations(graph, limits);
  const auto place = [&](const char* name) {
    const auto id = graph.find(name);
    const auto begin = map.offsets[static_cast<std::size_t>(id)];
    return std::pair(begin, begin + buffer_bytes(graph.buffer(id), limits));
  };
  const std::pair<const char*, const char*> apart[] = {
      {"act.glu", "act.x"}, {"act.q", "act.gate"}, {"act.q", "act.up"}, {"act.q", "act.glu"}, {"act.y", "act.glu"}};
  for (const auto& [a, b] : apart)
    EXPECT_TRUE(place(a).first >= place(b).second || place(b).first >= place(a).second) << a << ' ' << b;
}

TEST(Alias, SizesFollowTheLimits) {
  const auto graph = *ir::parse(
      "graph \"g\" stage both\nbuffer act.a activation f32 [tokens, 16]\n"
      "buffer act.q activation q8a256 [outputs, 512]\nbuffer act.v activation i32 [tokens]\n");
  EXPECT_EQ(buffer_bytes(graph.buffer(0), {10, 3}), 640u);
  EXPECT_EQ(buffer_bytes(graph.buffer(1), {10, 3}), 3u * 2 * 292);
  EXPECT_EQ(buffer_bytes(graph.buffer(2), {10, 3}), 40u);
}

struct Random {
  ring::PacketBatch batch;
  std::vector<Access> accesses;
};

// Packets over a small memory, right as verify would have it: packets of one phase do not conflict.
bool conflict(const ring::PacketBatch& batch, const std::vector<Access>& accesses, std::size_t a, std::size_t b) {
  const auto one = [&](std::size_t p, std::uint32_t i) { return batch.bindings[batch.packets[p].first_binding + i]; };
  for (std::uint32_t i = 0; i < batch.packets[a].n_bindings; ++i)
    for (std::uint32_t j = 0; j < batch.packets[b].n_bindings; ++j) {
      if (i < accesses[a].n_inputs && j < accesses[b].n_inputs) continue;
      const auto x = one(a, i), y = one(b, j);
      if (x.bo != 0 && x.bo == y.bo && x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes) return true;
    }
  return false;
}

Random random_batch(std::mt19937& rng, bool barrier_after_each) {
  Random r;
  std::size_t phase_begin = 0;
  for (int n = 0; n < 40; ++n) {
    ring::Packet packet;
    packet.kind = ring::PacketKind::kDispatch;
    packet.layer = n;
    packet.first_binding = static_cast<std::uint32_t>(r.batch.bindings.size());
    packet.n_bindings = 3;
    for (int i = 0; i < 3; ++i)
      r.batch.bindings.push_back({static_cast<std::uint32_t>(rng() % 3), rng() % 16 * 4, rng() % 8 + 1});
    const auto push_barrier = [&] {
      r.batch.packets.push_back({});
      r.accesses.push_back({});
      phase_begin = r.batch.packets.size();
    };
    r.batch.packets.push_back(packet);
    r.accesses.push_back({2});
    bool conflicts = false;
    for (std::size_t p = phase_begin; p + 1 < r.batch.packets.size(); ++p)
      conflicts = conflicts || conflict(r.batch, r.accesses, p, r.batch.packets.size() - 1);
    if (conflicts) {
      r.batch.packets.pop_back(), r.accesses.pop_back();
      push_barrier();
      r.batch.packets.push_back(packet), r.accesses.push_back({2});
    }
    if (barrier_after_each || rng() % 4 == 0) push_barrier();
  }
  r.batch.body_end = static_cast<std::uint32_t>(r.batch.packets.size());
  return r;
}

TEST(Barriers, OneStaysBetweenEveryHazardAndNoneIsIdle) {
  std::mt19937 rng(1);
  std::size_t dropped = 0;
  for (int trial = 0; trial < 500; ++trial) {
    auto r = random_batch(rng, trial % 2 == 0);
    const auto before = r.batch.packets.size();
    auto batch = r.batch;
    elide_barriers(batch, r.accesses);
    dropped += before - batch.packets.size();
    std::vector<Access> accesses;
    std::vector<int> order;
    for (const auto& packet : batch.packets) {
      accesses.push_back({packet.kind == ring::PacketKind::kDispatch ? 2u : 0u});
      if (packet.kind == ring::PacketKind::kDispatch) order.push_back(packet.layer);
    }
    ASSERT_EQ(order.size(), 40u);
    EXPECT_TRUE(std::ranges::is_sorted(order));
    std::size_t phase_begin = 0, previous_begin = 0;
    for (std::size_t i = 0; i < batch.packets.size(); ++i) {
      if (batch.packets[i].kind == ring::PacketKind::kBarrier) {
        previous_begin = phase_begin, phase_begin = i + 1;
        // What stands behind a barrier needs it: it conflicts with something since the barrier before.
        ASSERT_LT(i + 1, batch.packets.size());
        bool needed = false;
        for (std::size_t p = previous_begin; p < i; ++p) needed = needed || conflict(batch, accesses, p, i + 1);
        EXPECT_TRUE(needed) << trial << " at " << i;
        continue;
      }
      for (std::size_t p = phase_begin; p < i; ++p)
        ASSERT_FALSE(conflict(batch, accesses, p, i)) << trial << ": packets " << p << " and " << i;
    }
  }
  EXPECT_GT(dropped, 1000u);
}

TEST(Barriers, IndexesFollow) {
  ring::PacketBatch batch;
  std::vector<Access> accesses;
  for (int i = 0; i < 4; ++i) {  // a dispatch and a barrier each, none of which touches another
    ring::Packet packet;
    packet.kind = ring::PacketKind::kDispatch;
    packet.first_binding = static_cast<std::uint32_t>(i), packet.n_bindings = 1;
    batch.bindings.push_back({1, std::uint64_t(i) * 64, 64});
    batch.packets.push_back(packet), accesses.push_back({0});
    batch.packets.push_back({}), accesses.push_back({});
  }
  batch.layer_end = {2, 4, 8};
  batch.body_end = 6;
  elide_barriers(batch, accesses);
  ASSERT_EQ(batch.packets.size(), 5u);  // 0 1 2 | 3: the output part stands behind a barrier
  EXPECT_EQ(batch.packets[3].kind, ring::PacketKind::kBarrier);
  EXPECT_EQ(batch.layer_end, (std::vector<std::uint32_t>{1, 2, 5}));
  EXPECT_EQ(batch.body_end, 4u);
}

// A ring that knows some kernels only.
class Deaf final : public ring::Ring {
 public:
  Deaf() : table_(kernel::Target::kCpu) {}
  Result<ring::Fence> submit(const ring::Submission&) override { return ring::Fence{}; }
  Status wait(ring::Fence) override { return {}; }
  Result<std::span<std::byte>> map(const ring::Buffer&) override { return std::span<std::byte>(); }
  Result<ring::Buffer> alloc_bo(std::uint64_t bytes, Heap heap) override { return ring::Buffer{1, bytes, heap}; }
  void free_bo(const ring::Buffer&) override {}
  Result<ring::Kernel> load_kernel(std::span<const std::byte> zrt) override {
    loaded.push_back(*kernel::read_zrt(zrt));
    return ring::Kernel{static_cast<std::uint32_t>(loaded.size())};
  }
  const kernel::KernelTable& kernels() const override { return table_; }
  ring::RingStats stats() const override { return {}; }
  std::string describe() const override { return ""; }
  kernel::KernelTable table_;
  std::vector<kernel::ZrtFile> loaded;
};

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
  Deaf ring;
  KernelCache cache;
  const auto batch = lower(*ir::parse(kLinear), ring, anywhere, cache);
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().code, StatusCode::kUnavailable);
  EXPECT_THAT(batch.error().message, HasSubstr("LINEAR of type f16"));
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
  Deaf ring;
  KernelCache cache;
  auto e = entry({"dim:n", "dim:k", "dim:m", "dtype:w", "dtype:bias", "pitch:y"});
  e.grid[0] = {"m", 32};
  e.grid[1] = {"n", 1};
  e.lds_bytes = [](const std::uint32_t* s) { return std::uint64_t{s[1]} * 4; };
  ring.table_.add(ir::Op::LINEAR, DType::kF16, e);
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
    Deaf ring;
    KernelCache cache;
    ring.table_.add(ir::Op::LINEAR, DType::kF16, entry(symbols));
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
  ZRT_NEED_FIXTURES();
  ExecutorOptions options;
  options.tier = "t_cpu";
  options.max_slots = 2;
  options.max_context = 64;
  const auto executor = RingExecutor::open(std::string(ZRT_FIXTURES) + "/models/llama_spm-f32.gguf", options);
  ASSERT_TRUE(executor);
  const auto& batch = (*executor)->batch(ir::Stage::kPrefill);
  ASSERT_EQ(batch.layer_end.size(), (*executor)->config().n_layers);
  EXPECT_TRUE(std::ranges::is_sorted(batch.layer_end));
  EXPECT_LE(batch.layer_end.back(), batch.body_end);
  ASSERT_LT(batch.body_end, batch.packets.size());
  EXPECT_EQ(batch.packets[batch.body_end].op, ir::Op::GATHER_ROWS);
  EXPECT_EQ(batch.packets[batch.body_end - 1].kind, ring::PacketKind::kBarrier);
  for (std::size_t end : batch.layer_end) {  // the residual stream is complete where a layer ends
    while (batch.packets[end - 1].kind == ring::PacketKind::kBarrier) --end;
    EXPECT_EQ(batch.packets[end - 1].op, ir::Op::ADD);
  }
}

}  // namespace
}  // namespace zinc_rt::lower
