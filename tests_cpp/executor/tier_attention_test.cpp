// Attention, and what writes its cache, on every tier that can run here against T-CPU, bit for bit: types of caches,
// heads of many sizes, positions around borders of pages and chunks, windows; steps whose chunks are spread over
// workgroups and steps whose are not. What is in no token's view is NaN. What QUANTIZE makes of the rows is seen by a
// product of them.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <random>
#include <span>

#include "base/kv_type.h"
#include "driver_counts.h"
#include "kernels/common/half.h"
#include "kernels/common/kv_integer.h"
#include "random_weights.h"
#include "tier_graph.h"

namespace zinc_rt {
namespace {

constexpr std::uint32_t kPages = 40;  // 5 chunks

struct Attention {
  DType kv;
  std::uint32_t n_heads, n_kv_heads, head_dim, v_head_dim, window = 0;
  float softcap = 0;
  std::uint32_t pages = kPages;  // of a slot
  bool has_sinks = false;
};
void PrintTo(const Attention& s, std::ostream* out) {
  *out << to_string(s.kv) << " " << s.n_heads << " heads on " << s.n_kv_heads << " of " << s.head_dim << " and "
       << s.v_head_dim << ", window " << s.window << ", softcap " << s.softcap << (s.has_sinks ? ", sinks" : "");
}

// A token at each position, of the slot beside it.
struct StepTokens {
  std::vector<std::int32_t> pos, slots;

  StepTokens& add(std::int32_t slot, std::int32_t first, std::int32_t n) {
    for (std::int32_t i = 0; i < n; ++i) pos.push_back(first + i), slots.push_back(slot);
    return *this;
  }
};

// Activations, caches and what requests say, of a step whose slots have s.pages pages each.
struct Operands {
  ir::BufferId k, v, pos, slot, pages, sinks;
};
ir::BufferId declare_rows(ir::Graph& graph, const char* name, std::uint32_t width) {
  return declare(graph, name, ir::BufferClass::kActivation, DType::kF32, {ir::kTokens, width});
}
// Elements of a token's row of keys or of values.
std::uint32_t cache_row(const Attention& s, std::uint32_t head_dim) {
  return static_cast<std::uint32_t>(kv_row(*find_kv_cell(s.kv), s.n_kv_heads, head_dim));
}
Operands declare_operands(ir::Graph& graph, const Attention& s, std::uint32_t n_slots) {
  using enum ir::BufferClass;
  return {declare(graph, "state.k", kState, s.kv, {n_slots * s.pages, 16, cache_row(s, s.head_dim)}),
          declare(graph, "state.v", kState, s.kv, {n_slots * s.pages, 16, cache_row(s, s.v_head_dim)}),
          declare(graph, "request.pos", kRequest, DType::kI32, {ir::kTokens}),
          declare(graph, "request.slot", kRequest, DType::kI32, {ir::kTokens}),
          declare(graph, "request.pages", kRequest, DType::kI32, {n_slots, s.pages}),
          s.has_sinks ? declare(graph, "model.sinks", kWeight, DType::kF32, {s.n_heads}) : ir::kNoBuffer};
}

// y = FLASH_ATTN, of a decode graph or another; out = LINEAR(QUANTIZE(y), w), if weights have a type and rows of y
// whole blocks.
void add_attention(ir::Graph& graph, const Attention& s, ir::BufferId q, const Operands& of, bool is_decode,
                   std::optional<DType> weights) {
  const std::uint32_t width = s.n_heads * s.v_head_dim;
  const auto y = declare_rows(graph, "act.y", width);
  auto& node = add_node(graph, is_decode ? ir::Op::FLASH_ATTN : ir::Op::FLASH_ATTN_BATCHED,
                        {q, of.k, of.v, of.pos, of.slot, of.pages, of.sinks}, {y});
  set_attention(node, s);
  if (!weights || width % traits(act_dtype(*weights)).block_elems != 0) return;
  const auto rows = declare(graph, "act.rows", ir::BufferClass::kActivation, act_dtype(*weights), {ir::kTokens, width});
  const auto w = declare(graph, "model.w", ir::BufferClass::kWeight, *weights, {16, width});
  const auto out = declare_rows(graph, "act.out", 16);
  add_node(graph, ir::Op::QUANTIZE, {y}, {rows});
  add_node(graph, ir::Op::LINEAR, {rows, w, ir::kNoBuffer}, {out});
}
ir::Graph attention_graph(const Attention& s, std::uint32_t n_slots, bool is_decode, std::optional<DType> weights) {
  ir::Graph graph("attention", ir::Stage::kBoth);
  const auto q = declare_rows(graph, "act.q", s.n_heads * s.head_dim);
  add_attention(graph, s, q, declare_operands(graph, s, n_slots), is_decode, weights);
  return graph;
}

// q_out, and the cells of k and v, out of rows of q, k and v.
constexpr std::uint32_t kPositions = 640;  // of the table
struct CacheHeads {
  Attention of;
  std::uint32_t n_rot;
  bool neox, has_norms;
};
void PrintTo(const CacheHeads& s, std::ostream* out) {
  PrintTo(s.of, out);
  *out << ", " << s.n_rot << " turned" << (s.neox ? " by halves" : "") << (s.has_norms ? ", norms" : "");
}
ir::BufferId add_cache_write(ir::Graph& graph, const CacheHeads& s, const Operands& of) {
  using enum ir::BufferClass;
  const std::uint32_t nq = s.of.n_heads * s.of.head_dim;
  const auto norm = [&](const char* name) {
    return s.has_norms ? declare(graph, name, kWeight, DType::kF32, {s.of.head_dim}) : ir::kNoBuffer;
  };
  const auto q_out = declare_rows(graph, "act.q_out", nq);
  auto& node =
      add_node(graph, ir::Op::RMS_NORM_FUSED_ROPE_KV_WRITE,
               {declare_rows(graph, "act.q", nq), declare_rows(graph, "act.k", s.of.n_kv_heads * s.of.head_dim),
                declare_rows(graph, "act.v", s.of.n_kv_heads * s.of.v_head_dim), norm("model.q_norm"),
                norm("model.k_norm"), of.pos, of.slot,
                declare(graph, "const.table", kConstant, DType::kF32, {kPositions, s.n_rot}), of.pages, of.k, of.v},
               {q_out, of.k, of.v});
  node.inplace = true;
  ir::set_attr(node, "eps", 1e-5f);
  ir::set_attr(node, "head_dim", s.of.head_dim);
  ir::set_attr(node, "n_rot", s.n_rot);
  ir::set_attr(node, "neox", s.neox ? 1u : 0u);
  return q_out;
}

// Positions of single tokens and of several.
std::vector<std::vector<std::int32_t>> steps_of_tokens() {
  const std::vector<std::int32_t> all{639, 0, 127, 128, 300, 15, 255, 16, 511, 129};
  std::vector<std::vector<std::int32_t>> steps;
  for (const std::int32_t pos : all) steps.push_back({pos});
  steps.push_back({130, 7, 639});
  steps.push_back({});  // bucket of 64: several chunks in turn
  for (std::int32_t i = 0; i < 40; ++i) steps.back().push_back(i * 97 % 640);
  steps.push_back({});  // of 128: all of a token's chunks
  for (std::int32_t i = 0; i < 66; ++i) steps.back().push_back(i * 61 % 640);
  return steps;
}

class TierAttention : public TierGraphTest {
 protected:
  std::vector<float> normal(std::size_t n, float scale = 1.0f) {
    std::normal_distribution<float> of(0.0f, scale);
    std::vector<float> values(n);
    for (auto& v : values) v = of(rng_);
    return values;
  }
  std::vector<std::byte> cache(const Attention& s, std::uint32_t n_pages, std::uint32_t head_dim) {
    const DType type = s.kv;
    const std::uint32_t row = cache_row(s, head_dim);
    if (type == DType::kI16) return integers(s, n_pages, head_dim);
    const auto values = normal(std::size_t{n_pages} * 16 * row);
    if (type == DType::kF32) return bytes_of(values);
    if (type == DType::kF16) {
      std::vector<std::uint16_t> halves(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) halves[i] = f32_to_f16(values[i]);
      return bytes_of(halves);
    }
    std::vector<std::byte> blocks(values.size() / 32 * 34);
    for (std::size_t i = 0; i < blocks.size(); ++i)
      blocks[i] = static_cast<std::byte>(i % 34 == 1 ? 0x20 + rng_() % 4 : rng_());
    return blocks;
  }
  // Codes with scales of their own, so that values are about 1.
  std::vector<std::byte> integers(const Attention& s, std::uint32_t n_pages, std::uint32_t head_dim) {
    std::vector<std::uint16_t> words;
    const auto codes = normal(std::size_t{n_pages} * s.n_kv_heads * 16 * head_dim, 11000.0f);
    for (std::size_t page = 0, at = 0; page < n_pages; ++page) {
      for (const std::size_t end = at + std::size_t{s.n_kv_heads} * 16 * head_dim; at < end; ++at)
        words.push_back(static_cast<std::uint16_t>(
            static_cast<std::int16_t>(std::clamp(codes[at], -digits::kMost, digits::kMost))));
      for (std::uint32_t i = 0; i < s.n_kv_heads * 16; ++i)
        words.push_back(static_cast<std::uint16_t>(0x38a0 + rng_() % 64));  // 0.8 to 1.3 * 10^-4
    }
    return bytes_of(words);
  }
  // NaN in all cells of a slot from position `first` on.
  static void spoil(const Attention& s, std::uint32_t head_dim, std::vector<std::byte>& cache,
                    const std::vector<std::int32_t>& pages, std::uint32_t slot, std::uint32_t first) {
    const std::size_t cell = cache.size() / (pages.size() * 16);
    if (s.kv == DType::kI16) {
      for (std::uint32_t p = first; p < s.pages * 16; ++p)
        for (std::uint32_t head = 0; head < s.n_kv_heads; ++head) {
          std::byte* page = cache.data() + static_cast<std::size_t>(pages[slot * s.pages + p / 16]) * 16 * cell;
          std::memset(page + kv_integer::scales_at(head, s.n_kv_heads, head_dim) + p % 16 * 2, 0xFF, 2);
        }
      return;
    }
    for (std::uint32_t p = first; p < s.pages * 16; ++p)
      std::memset(cache.data() + (static_cast<std::uint32_t>(pages[slot * s.pages + p / 16]) * 16 + p % 16) * cell,
                  0xFF, cell);
  }
  std::vector<std::int32_t> shuffled_pages(std::uint32_t n) {
    std::vector<std::int32_t> pages(n);
    for (std::uint32_t i = 0; i < n; ++i) pages[i] = static_cast<std::int32_t>(i);
    std::ranges::shuffle(pages, rng_);
    return pages;
  }
  void expect_same(const ir::Graph& graph, std::uint32_t n, const Memory& given,
                   std::initializer_list<const char*> wanted) {
    auto expected = run_graph(**ring::find_tier("t_cpu"), graph, n, given, wanted),
         got = run_graph(*GetParam(), graph, n, given, wanted);
    for (const auto* name : wanted) {
      const auto& buffer = graph.buffer(graph.find(name));
      if (buffer.dtype == DType::kF32 && buffer.buffer_class != ir::BufferClass::kState)
        EXPECT_EQ(n_different(expected[name], got[name]), 0u) << name;
      else
        EXPECT_TRUE(expected[name] == got[name]) << name;
    }
  }
  // What a step of a token at each position, of the slot beside it, reads.
  Memory step_memory(const Attention& s, const std::vector<std::int32_t>& pos, const std::vector<std::int32_t>& slots) {
    const auto n = static_cast<std::uint32_t>(pos.size());
    const std::uint32_t n_slots = n_slots_of(slots);
    const auto pages = shuffled_pages(n_slots * s.pages);
    Memory given{{"act.q", bytes_of(normal(std::size_t{n} * s.n_heads * s.head_dim, 1.5f))},
                 {"state.k", cache(s, n_slots * s.pages, s.head_dim)},
                 {"state.v", cache(s, n_slots * s.pages, s.v_head_dim)},
                 {"request.pos", bytes_of(pos)},
                 {"request.slot", bytes_of(slots)},
                 {"request.pages", bytes_of(pages)}};
    if (s.has_sinks) {
      auto sinks = normal(s.n_heads, 4.0f);
      sinks[0] = -std::numeric_limits<float>::infinity();
      given["model.sinks"] = bytes_of(sinks);
    }
    for (std::uint32_t slot = 0; slot < n_slots; ++slot) {
      std::int32_t end = 0;
      for (std::uint32_t i = 0; i < n; ++i)
        if (slots[i] == static_cast<std::int32_t>(slot)) end = std::max(end, pos[i] + 1);
      spoil(s, s.head_dim, given["state.k"], pages, slot, static_cast<std::uint32_t>(end));
      spoil(s, s.v_head_dim, given["state.v"], pages, slot, static_cast<std::uint32_t>(end));
    }
    return given;
  }
  // Also what the write of its cache reads; the cells that it writes hold NaN before.
  Memory cache_write_memory(const CacheHeads& s, const std::vector<std::int32_t>& pos,
                            const std::vector<std::int32_t>& slots) {
    std::vector<std::int32_t> before(pos);
    for (std::int32_t& p : before) --p;
    Memory given = step_memory(s.of, before, slots);
    const auto n = pos.size();
    given["request.pos"] = bytes_of(pos);
    given["act.k"] = bytes_of(normal(n * s.of.n_kv_heads * s.of.head_dim));
    given["act.v"] = bytes_of(normal(n * s.of.n_kv_heads * s.of.v_head_dim));
    given["model.q_norm"] = bytes_of(normal(s.of.head_dim));
    given["model.k_norm"] = bytes_of(normal(s.of.head_dim));
    given["const.table"] = bytes_of(normal(std::size_t{kPositions} * s.n_rot));
    return given;
  }
  static std::uint32_t n_slots_of(const std::vector<std::int32_t>& slots) {
    return static_cast<std::uint32_t>(std::ranges::max(slots)) + 1;
  }
  void expect_same_step(const Attention& s, const std::vector<std::int32_t>& pos,
                        const std::vector<std::int32_t>& slots, bool is_decode = false) {
    const auto n = static_cast<std::uint32_t>(pos.size());
    SCOPED_TRACE(testing::Message() << testing::PrintToString(s) << ", " << n << " tokens, the first at " << pos[0]);
    static constexpr DType kWeights[] = {DType::kQ8_0, DType::kQ6_K, DType::kFixed16, DType::kQ6_K};
    const DType weights = s.n_heads * s.v_head_dim % 256 == 0 ? kWeights[n % 4] : DType::kQ8_0;
    const auto graph = attention_graph(s, n_slots_of(slots), is_decode, weights);
    Memory given = step_memory(s, pos, slots);
    if (graph.find("model.w") == ir::kNoBuffer) {
      expect_same(graph, n, given, {"act.y"});
      return;
    }
    given["model.w"] = weight_bytes(weights, s.n_heads * s.v_head_dim);
    expect_same(graph, n, given, {"act.y", "act.out"});
  }
  std::vector<std::byte> weight_bytes(DType weights, std::uint32_t k) {
    if (weights == DType::kFixed16) return random_blocks(weights, {16, k, 1}, rng_);
    std::vector<std::byte> w(16 * row_bytes(weights, k));
    const std::size_t block = traits(weights).block_bytes, scale = weights == DType::kQ8_0 ? 1 : 209;
    for (std::size_t i = 0; i < w.size(); ++i)
      w[i] = static_cast<std::byte>(i % block == scale ? 0x20 + rng_() % 4 : rng_());
    return w;
  }
  // y of T-CPU, and of the tier in arithmetic `fast`.
  std::array<std::vector<std::byte>, 2> fast_values(const Attention& s, const StepTokens& step, const Memory& given) {
    const auto n = static_cast<std::uint32_t>(step.pos.size());
    const auto graph = attention_graph(s, n_slots_of(step.slots), false, std::nullopt);
    return {run_graph(**ring::find_tier("t_cpu"), graph, n, given, {"act.y"})["act.y"],
            run_graph(*GetParam(), graph, n, given, {"act.y"}, true)["act.y"]};
  }
  void expect_close_step(const Attention& s, const StepTokens& step) {
    SCOPED_TRACE(testing::Message() << testing::PrintToString(s) << ", the first token at " << step.pos[0]);
    const Memory given = step_memory(s, step.pos, step.slots);
    const auto [expected, got] = fast_values(s, step, given);
    // With exactly the bits of T-CPU, no kernel of arithmetic `fast` has run.
    const bool has_fast = (*GetParam()->make_ring({.threads = 2, .cpu_kernels = {}, .fast = true}))->is_fast();
    EXPECT_EQ(n_different(expected, got) != 0, has_fast);
    float most_v = 0;
    for (const std::byte *at = given.at("state.v").data(), *end = at + given.at("state.v").size(); at != end; at += 2) {
      std::uint16_t half;
      std::memcpy(&half, at, 2);
      const float v = std::abs(f16_to_f32(half));
      most_v = v > most_v ? v : most_v;
    }
    ASSERT_EQ(expected.size(), got.size());
    double squares = 0;
    for (std::size_t i = 0; i < expected.size(); i += 4) {
      float a, b;
      std::memcpy(&a, expected.data() + i, 4);
      std::memcpy(&b, got.data() + i, 4);
      const float off = std::abs(a - b) / most_v;
      ASSERT_TRUE(off <= 0x1p-9f) << "value " << i / 4 << ": " << a << " expected, " << b << " got";
      squares += static_cast<double>(off) * off;
    }
    EXPECT_LE(std::sqrt(squares / static_cast<double>(expected.size() / 4)), 0x1p-13);
  }
  // Every shape alone and among others; many workgroups only where heads are small.
  void expect_same_tokens(const Attention& s) {
    for (const auto& pos : steps_of_tokens()) {
      const auto n = static_cast<std::uint32_t>(pos.size());
      if (n > 3 && s.n_kv_heads * s.head_dim > 512) continue;
      if (n == 1 && s.n_kv_heads == 8 && pos[0] % 128 != 0) continue;
      std::vector<std::int32_t> slots(n);
      for (std::uint32_t i = 0; i < n; ++i) slots[i] = static_cast<std::int32_t>(i % 4);
      expect_same_step(s, pos, slots, true);
    }
  }
  std::mt19937 rng_{11};
};

// Heads with sinks, over each kind of cache: tokens of their own slots, of which a history may be one chunk or several;
// runs of a few tokens; tiles of a prompt.
TEST_P(TierAttention, WithSinksHasTheBitsOfTCpu) {
  for (const DType kv : {DType::kF16, DType::kF32, DType::kI16, DType::kQ8_0}) {
    expect_same_tokens({.kv = kv, .n_heads = 8, .n_kv_heads = 1, .head_dim = 64, .v_head_dim = 64, .has_sinks = true});
    const Attention windowed{
        .kv = kv, .n_heads = 6, .n_kv_heads = 2, .head_dim = 64, .v_head_dim = 64, .window = 130, .has_sinks = true};
    for (const auto& step : {StepTokens{}.add(0, 250, 5).add(1, 0, 3).add(2, 639, 1), StepTokens{}.add(0, 100, 90)})
      expect_same_step(windowed, step.pos, step.slots);
  }
}

TEST_P(TierAttention, HasTheBitsOfTCpu) {
  for (const Attention& s : {Attention{DType::kF16, 4, 1, 128, 128},
                             {DType::kF16, 16, 8, 64, 64},
                             {DType::kF16, 8, 8, 32, 32, 100},
                             {DType::kF16, 9, 1, 64, 64, 0, 20.0f},
                             {DType::kF16, 3, 1, 80, 80},
                             {DType::kF16, 6, 2, 96, 64, 130},
                             {DType::kF16, 2, 1, 192, 128},
                             {DType::kF16, 4, 2, 256, 256},
                             {DType::kF16, 5, 1, 24, 40},
                             {DType::kF16, 4, 2, 12, 12},
                             {DType::kF32, 32, 8, 16, 16},
                             {DType::kF32, 8, 1, 128, 128},
                             {DType::kF32, 2, 1, 256, 256},
                             {DType::kQ8_0, 16, 8, 32, 32},
                             {DType::kQ8_0, 4, 2, 64, 64, 200}})
    expect_same_tokens(s);
}
TEST_P(TierAttention, HasTheBitsOfTCpuOverIntegers) {
  for (const Attention& s : {Attention{DType::kI16, 4, 1, 128, 128},
                             {DType::kI16, 16, 8, 64, 64},
                             {DType::kI16, 9, 1, 64, 64, 0, 20.0f},
                             {DType::kI16, 6, 2, 96, 64, 130},
                             {DType::kI16, 3, 1, 80, 80},
                             {DType::kI16, 17, 1, 16, 32, 300},
                             {DType::kI16, 2, 1, 192, 128},
                             {DType::kI16, 4, 2, 256, 256, 100},
                             {DType::kI16, 3, 1, 512, 512}})
    expect_same_tokens(s);
}

// Each family of kernels once, which takes seconds where the GPU is simulated: one token and some, of short texts and
// of long ones, prompts in steps of few tokens and of many, each type of cache, and arithmetic `fast`.
TEST_P(TierAttention, OfEachKindHasTheBitsOfTCpu) {
  const auto few = StepTokens{}.add(1, 17, 1).add(0, 384, 6), many = StepTokens{}.add(0, 0, 100).add(1, 60, 160);
  for (const Attention& s : {Attention{DType::kF16, 4, 1, 64, 64, 0, 20.0f},
                             {DType::kF16, 2, 1, 128, 128, 100},
                             {DType::kF16, 2, 1, 12, 12},
                             {DType::kF32, 2, 1, 64, 64},
                             {DType::kQ8_0, 2, 1, 32, 32},
                             {DType::kI16, 4, 1, 64, 64, 0, 20.0f},
                             {DType::kI16, 2, 1, 128, 112, 100}}) {
    expect_same_step(s, {300}, {0}, true);
    expect_same_step(s, {130, 7, 639}, {0, 1, 2}, true);
    expect_same_step(s, few.pos, few.slots);
  }
  expect_same_step({DType::kF16, 2, 1, 32, 32}, many.pos, many.slots);
  expect_same_step({DType::kQ8_0, 2, 1, 32, 32}, many.pos, many.slots);
  expect_same_step({DType::kI16, 2, 1, 32, 32, 90}, many.pos, many.slots);
  expect_close_step({DType::kF16, 2, 1, 64, 64}, StepTokens{}.add(0, 5, 130));
}

// Tokens with more chunks than are merged as they come.
TEST_P(TierAttention, HasTheBitsOfTCpuBehindManyChunks) {
  for (Attention s : {Attention{DType::kF16, 4, 1, 64, 64},
                      {DType::kF32, 3, 1, 32, 40, 8600},
                      {DType::kI16, 4, 1, 64, 64, 5000},
                      {DType::kI16, 9, 1, 32, 96}}) {
    s.pages = 600;
    for (const std::int32_t pos : {33 * 128 - 1, 33 * 128, 65 * 128 + 3, 9599}) expect_same_step(s, {pos}, {0}, true);
  }
}

// Prompts that begin anywhere in a page and end in another chunk, and between them tokens that stand alone: more tiles
// of tokens than a step of a prompt has.
StepTokens mixed_step(std::int32_t n_alone) {
  StepTokens step;
  step.add(0, 90, 115).add(1, 0, 37);
  for (std::int32_t i = 0; i < n_alone; ++i) step.add(2 + i % 2, i * 97 % 640, 1);
  return step.add(3, 570, 70).add(0, 639, 1);
}

TEST_P(TierAttention, HasTheBitsOfTCpuInStepsOfManyTokens) {
  const auto [pos, slots] = mixed_step(40);
  for (const Attention& s : {Attention{DType::kF16, 4, 1, 128, 128},
                             {DType::kF16, 8, 2, 128, 128, 100},
                             {DType::kF16, 3, 1, 64, 64, 0, 20.0f},
                             {DType::kF16, 16, 1, 64, 64, 300},
                             {DType::kF16, 33, 1, 16, 16},
                             {DType::kF16, 65, 1, 16, 16},
                             {DType::kF16, 1, 1, 80, 80, 130},
                             {DType::kF16, 10, 2, 96, 64, 3},
                             {DType::kF16, 2, 1, 192, 128, 50, 30.0f},
                             {DType::kF16, 4, 1, 256, 248},
                             {DType::kF16, 4, 2, 12, 12},
                             {DType::kF32, 5, 1, 128, 120, 200, 15.0f},
                             {DType::kF32, 2, 2, 40, 64},
                             {DType::kF32, 2, 1, 256, 256},
                             {DType::kQ8_0, 4, 2, 32, 32, 70}})
    expect_same_step(s, pos, slots);
}
TEST_P(TierAttention, HasTheBitsOfTCpuInStepsOfManyTokensOverIntegers) {
  const auto [pos, slots] = mixed_step(40);
  for (const Attention& s : {Attention{DType::kI16, 4, 1, 128, 128},
                             {DType::kI16, 8, 2, 128, 128, 100},
                             {DType::kI16, 3, 1, 64, 64, 0, 20.0f},
                             {DType::kI16, 65, 1, 16, 16},
                             {DType::kI16, 1, 1, 80, 80, 130},
                             {DType::kI16, 10, 2, 96, 64, 3},
                             {DType::kI16, 2, 1, 192, 128, 50, 30.0f},
                             {DType::kI16, 4, 1, 256, 240},
                             {DType::kI16, 2, 1, 512, 512}})
    expect_same_step(s, pos, slots);
}

// Steps of fewer than 256 tokens in which slots have several, whose tokens share K and V where they are enough and deep
// enough: prompts that begin anywhere in a page and go on over borders of chunks, and between them tokens that stand
// alone, runs too short or too shallow, and tokens of a slot that do not follow each other.
std::vector<StepTokens> steps_of_runs() {
  std::vector<StepTokens> steps;
  steps.push_back(StepTokens{}.add(0, 600, 2));
  steps.push_back(StepTokens{}.add(1, 17, 1).add(0, 384, 4));
  steps.push_back(StepTokens{}.add(0, 639, 1).add(1, 387, 5).add(2, 520, 1).add(3, 508, 9).add(0, 380, 12));
  steps.push_back({});
  for (std::int32_t i = 0; i < 12; ++i) steps.back().add(i % 3, i * 53 % 640, 1);
  steps.back().add(3, 497, 33).add(2, 0, 1);
  steps.push_back(StepTokens{}.add(0, 571, 37).add(1, 130, 22).add(2, 461, 3).add(2, 600, 1).add(2, 602, 1));
  steps.back().add(3, 490, 6).add(3, 490, 6).add(3, 497, 1).add(1, 638, 1).add(1, 639, 1).add(2, 639, 1);
  steps.push_back(StepTokens{}.add(2, 512, 128));
  steps.push_back(StepTokens{}.add(1, 3, 1).add(3, 440, 199));
  return steps;
}

// Each shape with half of the steps, by turns.
void each_of_half(std::span<const StepTokens> steps, std::initializer_list<Attention> shapes, const auto& each) {
  std::size_t first = 0;
  for (const Attention& s : shapes) {
    for (std::size_t i = first; i < steps.size(); i += 2) each(s, steps[i]);
    first = 1 - first;
  }
}
TEST_P(TierAttention, HasTheBitsOfTCpuInStepsOfFewTokensWithPrompts) {
  each_of_half(steps_of_runs(),
               {{DType::kF16, 4, 1, 128, 128},
                {DType::kF16, 8, 2, 128, 128},
                {DType::kF16, 8, 2, 128, 128, 500},
                {DType::kF16, 64, 8, 16, 16},
                {DType::kF16, 2, 2, 64, 64, 0, 20.0f},
                {DType::kF16, 32, 1, 16, 32, 450}},
               [&](const Attention& s, const StepTokens& step) { expect_same_step(s, step.pos, step.slots); });
}
TEST_P(TierAttention, HasTheBitsOfTCpuInStepsOfFewTokensWithPromptsOfOtherHeads) {
  each_of_half(steps_of_runs(),
               {{DType::kF16, 6, 2, 96, 64, 388},
                {DType::kF16, 4, 1, 256, 248},
                {DType::kF16, 4, 2, 80, 40, 200},
                {DType::kF32, 5, 1, 128, 120, 0, 15.0f},
                {DType::kF32, 8, 8, 32, 32}},
               [&](const Attention& s, const StepTokens& step) { expect_same_step(s, step.pos, step.slots); });
}

// Over integers all tokens of such steps go by runs, however few and shallow they are; those of groups of more than 16
// heads do not. A run has several tokens if the runs, their chunks and the kv heads are workgroups for the whole GPU:
// so some shapes have many kv heads, and the last step is behind many chunks.
TEST_P(TierAttention, HasTheBitsOfTCpuInStepsOfFewTokensWithPromptsOverIntegers) {
  auto steps = steps_of_runs();
  steps.push_back(StepTokens{}.add(0, 125, 8).add(1, 0, 2).add(2, 635, 5).add(3, 255, 3).add(1, 2, 1));
  steps.push_back(StepTokens{}.add(0, 300, 8));
  each_of_half(steps,
               {{DType::kI16, 4, 1, 128, 128},
                {DType::kI16, 32, 16, 64, 64, 100},
                {DType::kI16, 48, 16, 16, 32, 0, 20.0f},
                {DType::kI16, 64, 64, 16, 16, 3},
                {DType::kI16, 7, 1, 80, 48},
                {DType::kI16, 128, 16, 16, 32, 500},
                {DType::kI16, 17, 1, 16, 32, 300},
                {DType::kI16, 4, 1, 256, 240, 130}},
               [&](const Attention& s, const StepTokens& step) { expect_same_step(s, step.pos, step.slots); });
  const auto deep = StepTokens{}.add(1, 2299, 9).add(0, 4, 3).add(2, 2555, 5).add(1, 2400, 1);
  for (Attention s : {Attention{DType::kI16, 8, 2, 128, 128},
                      {DType::kI16, 6, 2, 48, 144, 0, 15.0f},
                      {DType::kI16, 8, 2, 256, 32},
                      {DType::kI16, 2, 2, 32, 256, 2100}}) {
    s.pages = 160;
    expect_same_step(s, deep.pos, deep.slots);
  }
}

// Of arithmetic `fast` the rounding of q and of the weights p to f16 shows, each by up to 2^-11. A score errs by about
// 2^-11 of the root of its products' summed squares, which is up to 4 here, so p by some 2^-9. y is a mean of v by p:
// its errors are below 2^-9 of the largest v, and mostly far below.
TEST_P(TierAttention, IsCloseToTCpuInArithmeticFast) {
  for (const Attention& s : {Attention{DType::kF16, 4, 1, 128, 128},
                             {DType::kF16, 8, 2, 128, 128, 127},
                             {DType::kF16, 14, 2, 64, 64, 300},
                             {DType::kF16, 3, 1, 64, 64, 0, 20.0f},
                             {DType::kF16, 2, 2, 80, 80},
                             {DType::kF16, 1, 1, 96, 64, 3},
                             {DType::kF16, 2, 1, 192, 128, 50, 30.0f},
                             {DType::kF16, 4, 1, 256, 248},
                             {DType::kF16, 4, 2, 256, 256, 130}}) {
    expect_close_step(s, mixed_step(10));
    expect_close_step(s, StepTokens{}.add(0, 0, 90).add(1, 540, 100));
  }
  expect_close_step({DType::kF16, 128, 1, 16, 16}, StepTokens{}.add(0, 5, 130));
  // More tokens than the threads that look for tiles ask for at once.
  expect_close_step({DType::kF16, 2, 1, 16, 16, 20}, StepTokens{}.add(0, 0, 640).add(1, 3, 600));
}

// What has no kernels in arithmetic `fast`: other caches, heads that are no whole vectors, more heads than a tile has
// rows, and few tokens.
TEST_P(TierAttention, HasTheBitsOfTCpuInArithmeticFastWhereItHasNoKernel) {
  const auto expect_same_values = [&](const Attention& s, const StepTokens& step) {
    const auto [expected, got] = fast_values(s, step, step_memory(s, step.pos, step.slots));
    EXPECT_EQ(n_different(expected, got), 0u) << testing::PrintToString(s);
  };
  for (const Attention& s : {Attention{DType::kF32, 5, 1, 64, 56, 100, 15.0f},
                             {DType::kQ8_0, 4, 2, 32, 32, 70},
                             {DType::kF16, 4, 2, 12, 12},
                             {DType::kF16, 129, 1, 16, 16}})
    expect_same_values(s, StepTokens{}.add(0, 5, 130));
  expect_same_values({DType::kF16, 4, 1, 128, 128}, StepTokens{}.add(0, 5, 128));
}

TEST_P(TierAttention, WritesTheCacheOfTCpu) {
  for (const CacheHeads& s : {CacheHeads{{DType::kF16, 32, 8, 128, 128}, 128, true, true},
                              {{DType::kF16, 8, 2, 64, 64}, 64, false, false},
                              {{DType::kF16, 3, 3, 80, 80}, 32, true, true},
                              {{DType::kF16, 4, 1, 256, 256}, 64, true, true},
                              {{DType::kF16, 2, 1, 512, 512}, 512, true, true},
                              {{DType::kF16, 6, 2, 24, 48}, 20, false, true},
                              {{DType::kF32, 5, 5, 96, 192}, 96, true, false},
                              {{DType::kQ8_0, 4, 2, 64, 64}, 64, false, true},
                              {{DType::kQ8_0, 4, 2, 96, 96}, 48, true, true},
                              {{DType::kI16, 32, 8, 128, 128}, 128, true, true},
                              {{DType::kI16, 6, 2, 32, 48}, 20, false, true},
                              {{DType::kI16, 4, 1, 256, 256}, 64, true, true},
                              {{DType::kI16, 2, 1, 512, 512}, 512, true, true}}) {
    for (const std::vector<std::int32_t>& pos : {std::vector<std::int32_t>{0}, {599}, {5, 16, 400}}) {
      const auto n = static_cast<std::uint32_t>(pos.size());
      SCOPED_TRACE(testing::Message() << testing::PrintToString(s) << ", " << n);
      std::vector<std::int32_t> slots(n);
      for (std::uint32_t i = 0; i < n; ++i) slots[i] = static_cast<std::int32_t>(i);
      ir::Graph graph("cache", ir::Stage::kBoth);
      add_cache_write(graph, s, declare_operands(graph, s.of, n));
      expect_same(graph, n, cache_write_memory(s, pos, slots), {"act.q_out", "state.k", "state.v"});
    }
  }
}

// What writes the cache and attention behind it: of a token of each slot a tier may make one kernel of them, which
// T-CUDA does where chunks are spread over workgroups that have them in shared memory. Positions begin, fill and end
// chunks.
TEST_P(TierAttention, HasTheBitsOfTCpuBehindWhatWritesTheCache) {
  struct Case {
    CacheHeads heads;
    const char* joined;  // the kernel of T-CUDA; null: two
  };
  const auto launches = find_count<LaunchCount>("cuda_sim_launches");
  const auto n_launches = [&](const char* kernel) {
    return launches != nullptr && kernel != nullptr ? launches(kernel) : 0;
  };
  for (const auto& [s, joined] : {Case{{{DType::kF16, 32, 8, 128, 128}, 128, true, true}, "flash_attn_1_f16_128"},
                                  {{{DType::kF16, 9, 3, 64, 64}, 64, false, false}, "flash_attn_1_f16_64"},
                                  {{{DType::kF16, 9, 1, 64, 64, 0, 20.0f}, 48, true, true}, "flash_attn_1_f16_64"},
                                  {{{DType::kF16, 16, 1, 128, 128, 130}, 64, true, false}, "flash_attn_1_f16_128"},
                                  {{{DType::kF16, 3, 3, 80, 80, 1}, 32, true, true}, "flash_attn_1_f16_128"},
                                  {{{DType::kF16, 6, 3, 96, 64}, 96, false, true}, "flash_attn_1_f16_128"},
                                  {{{DType::kF16, 4, 2, 256, 256, 100}, 256, true, true}, nullptr},
                                  {{{DType::kF16, 5, 1, 24, 48}, 20, false, true}, "flash_attn_1_f16_64"},
                                  // Four workgroups have five chunks.
                                  {{{DType::kF16, 132, 132, 16, 16}, 16, true, false}, "flash_attn_1_f16_64"},
                                  {{{DType::kF32, 8, 2, 64, 64}, 64, true, true}, "flash_attn_1_f32_64"},
                                  {{{DType::kF32, 7, 1, 128, 128}, 128, false, false}, "flash_attn_1_f32_128"},
                                  {{{DType::kF16, 4, 2, 12, 12}, 12, true, true}, nullptr},
                                  {{{DType::kF16, 2, 1, 512, 512}, 512, true, true}, nullptr},
                                  {{{DType::kQ8_0, 4, 2, 64, 64}, 64, true, true}, nullptr},
                                  {{{DType::kI16, 8, 2, 128, 128}, 128, true, true}, nullptr},
                                  {{{DType::kI16, 9, 1, 64, 64, 0, 20.0f}, 48, true, true}, nullptr},
                                  {{{DType::kI16, 6, 3, 96, 64, 130}, 96, false, false}, nullptr},
                                  {{{DType::kI16, 132, 132, 16, 16}, 16, true, false}, nullptr},
                                  {{{DType::kI16, 4, 2, 256, 256}, 256, true, true}, nullptr}}) {
    for (const std::vector<std::int32_t>& pos : {std::vector<std::int32_t>{0},
                                                 {127},
                                                 {128},
                                                 {300},
                                                 {511},
                                                 {639},
                                                 {130, 400},
                                                 {127, 128, 0, 639, 256},
                                                 {17, 511, 128, 300}}) {
      const auto n = static_cast<std::uint32_t>(pos.size());
      SCOPED_TRACE(testing::Message() << testing::PrintToString(s) << ", the first token at " << pos[0]);
      std::vector<std::int32_t> slots(n);
      for (std::uint32_t i = 0; i < n; ++i) slots[i] = static_cast<std::int32_t>(n - 1 - i);
      ir::Graph graph("cache and attention", ir::Stage::kBoth);
      const Operands operands = declare_operands(graph, s.of, n);
      add_attention(graph, s.of, add_cache_write(graph, s, operands), operands, true, DType::kQ8_0);
      Memory given = cache_write_memory(s, pos, slots);
      const unsigned long before = n_launches(joined);
      if (graph.find("model.w") == ir::kNoBuffer) {
        expect_same(graph, n, given, {"act.q_out", "state.k", "state.v", "act.y"});
      } else {
        given["model.w"] = weight_bytes(DType::kQ8_0, s.of.n_heads * s.of.v_head_dim);
        expect_same(graph, n, given, {"act.q_out", "state.k", "state.v", "act.y", "act.out"});
      }
      // Buffers have room for n rows; whether they lie apart the tier asks of as many as its plan has, a power of two.
      if (launches == nullptr || !std::has_single_bit(n)) continue;
      const bool is_spread = n * s.of.n_kv_heads < 528;  // over workgroups
      EXPECT_EQ(n_launches(joined) - before, joined != nullptr && is_spread ? 1u : 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, TierAttention, ::testing::ValuesIn(other_tiers()),
                         [](const auto& info) { return info.param->name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TierAttention);

}  // namespace
}  // namespace zinc_rt
