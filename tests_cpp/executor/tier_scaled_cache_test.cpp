// KV caches whose heads have scales, of integers and of rotated codes, on every tier that has their kernels against T-CPU,
// bit for bit: the cells that a step writes, and attention over them and over earlier ones, of a token a slot and of
// prompts. What is in no token's view has the scale NaN and codes of any bits.
#include <algorithm>
#include <cmath>
#include <random>

#include "base/kv_type.h"
#include "kernels/common/half.h"
#include "kernels/common/kv_integer.h"
#include "kernels/common/kv_rotate.h"
#include "tier_graph.h"

namespace zinc_rt::tier_scaled_cache {
namespace {

struct Shape {
  std::uint32_t n_heads, n_kv_heads, head_dim, v_head_dim, window = 0;
  float softcap = 0;
  const char* kv = "i16";
  std::uint32_t pages = 24;  // of a slot: 3 chunks
};
void PrintTo(const Shape& s, std::ostream* out) {
  *out << s.n_heads << " heads on " << s.n_kv_heads << " of " << s.head_dim << " and " << s.v_head_dim << ", window "
       << s.window << ", softcap " << s.softcap << ", " << s.kv;
}

// Positions [first, first + n) of a slot.
struct Tokens {
  std::int32_t slot, first, n = 1;
};

ir::Graph cache_graph(const Shape& s, std::uint32_t n_slots, bool is_decode) {
  using enum ir::BufferClass;
  ir::Graph graph("integer cache", ir::Stage::kBoth);
  const auto rows = [&](const char* name, std::uint32_t width) {
    return declare(graph, name, kActivation, DType::kF32, {ir::kTokens, width});
  };
  const KvType& type = *find_kv_type(s.kv);
  const auto state = [&](const char* name, DType cell, std::uint32_t dim) {
    const auto row = static_cast<std::uint32_t>(kv_row(*find_kv_cell(cell), s.n_kv_heads, dim));
    return declare(graph, name, kState, cell, {n_slots * s.pages, 16, row});
  };
  const auto k = state("state.k", type.k, s.head_dim), v = state("state.v", type.v, s.v_head_dim);
  const auto pos = declare(graph, "request.pos", kRequest, DType::kI32, {ir::kTokens}),
             slot = declare(graph, "request.slot", kRequest, DType::kI32, {ir::kTokens}),
             pages = declare(graph, "request.pages", kRequest, DType::kI32, {n_slots, s.pages});
  auto& write = add_node(
      graph, ir::Op::KV_WRITE_BATCHED,
      {rows("act.k", s.n_kv_heads * s.head_dim), rows("act.v", s.n_kv_heads * s.v_head_dim), pos, slot, pages, k, v},
      {k, v});
  write.inplace = true;
  ir::set_attr(write, "head_dim", s.head_dim);
  auto& attend = add_node(graph, is_decode ? ir::Op::FLASH_ATTN : ir::Op::FLASH_ATTN_BATCHED,
                          {rows("act.q", s.n_heads * s.head_dim), k, v, pos, slot, pages, ir::kNoBuffer},
                          {rows("act.y", s.n_heads * s.v_head_dim)});
  set_attention(attend, s);
  return graph;
}

class TierScaledCache : public TierGraphTest {
 protected:
  static bool has_kernels(const char* kv) {
    const auto ring = GetParam()->make_ring({.threads = 2, .cpu_kernels = {}});
    EXPECT_TRUE(ring);
    return ring && (*ring)->kernels().find(ir::Op::FLASH_ATTN, find_kv_type(kv)->k) != nullptr;
  }
  std::vector<float> normal(std::size_t n) {
    std::normal_distribution<float> of;
    std::vector<float> values(n);
    for (auto& v : values) v = of(rng_);
    return values;
  }
  // Pages of any codes. Scales are NaN, but for those of the positions before `ends` of each slot.
  std::vector<std::byte> cache(const Shape& s, bool is_key, const std::vector<std::int32_t>& pages,
                               const std::vector<std::int32_t>& ends) {
    const KvType& type = *find_kv_type(s.kv);
    if (find_kv_cell(type.k)->layout == KvLayout::kRotated)
      return rotated(s, is_key, is_key && type.k == DType::kR8, pages, ends);
    const std::uint32_t dim = is_key ? s.head_dim : s.v_head_dim;
    const std::size_t part = std::size_t{16} * s.n_kv_heads * (dim + 1);
    std::vector<std::uint16_t> words(pages.size() * part);
    for (auto& word : words) word = static_cast<std::uint16_t>(rng_());
    for (std::size_t p = 0; p < pages.size() * 16; ++p) {
      const std::size_t slot = p / (s.pages * 16), position = p % (s.pages * 16);
      const bool is_seen = position < static_cast<std::size_t>(ends[slot]);
      std::uint16_t* page = words.data() + static_cast<std::size_t>(pages[p / 16]) * part;
      const auto token = static_cast<std::uint32_t>(p % 16);
      for (std::uint32_t head = 0; head < s.n_kv_heads; ++head) {
        std::uint16_t* codes = page + kv_integer::codes_at(head, dim) / 2;
        for (std::uint32_t i = 0; is_seen && i < dim; ++i)
          for (const auto at : {kv_integer::key_at(token, i), kv_integer::value_at(token, i, dim)})
            codes[at / 2] = codes[at / 2] == 0x8000 ? std::uint16_t{7} : codes[at / 2];
        page[kv_integer::scales_at(head, s.n_kv_heads, dim) / 2 + token] =
            is_seen ? f32_to_bf16(1e-4f + 1e-6f * static_cast<float>(rng_() % 64)) : kv_integer::kNanScale;
      }
    }
    return bytes_of(words);
  }
  std::vector<std::byte> rotated(const Shape& s, bool is_key, bool is_r8, const std::vector<std::int32_t>& pages,
                                 const std::vector<std::int32_t>& ends) {
    const std::uint32_t dim = is_key ? s.head_dim : s.v_head_dim, n_blocks = dim / kv::kBlock;
    const std::uint64_t codes = kv::codes_at(is_r8, s.n_kv_heads, dim),
                        part = kv::scales_at(is_r8, s.n_kv_heads, s.n_kv_heads, dim);
    std::vector<std::byte> bytes(pages.size() * part);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto byte = static_cast<std::uint8_t>(rng_());
      bytes[i] = static_cast<std::byte>(is_r8 && i % part < codes && byte == 0x80 ? 7 : byte);
    }
    for (std::size_t p = 0; p < pages.size() * 16; ++p) {
      const std::size_t slot = p / (s.pages * 16), position = p % (s.pages * 16), token = p % 16;
      std::byte* page = bytes.data() + static_cast<std::size_t>(pages[p / 16]) * part;
      for (std::uint32_t head = 0; head < s.n_kv_heads; ++head)
        for (std::uint32_t block = 0; block < n_blocks; ++block) {
          const bool is_seen = position < static_cast<std::size_t>(ends[slot]);
          const auto d = static_cast<std::uint16_t>(is_seen ? 0x2400 + rng_() % 512 : 0x7e00);
          const std::size_t at = is_key ? block * 16 + token : token * n_blocks + block;
          std::memcpy(page + kv::scales_at(is_r8, head, s.n_kv_heads, dim) + at * 2, &d, 2);
        }
    }
    return bytes;
  }
  void expect_same(const Shape& s, const std::vector<Tokens>& parts, bool is_decode, bool has_odd_heads = false) {
    SCOPED_TRACE(testing::Message() << testing::PrintToString(s) << ", the first token at " << parts[0].first);
    std::vector<std::int32_t> pos, slots, ends;
    for (const Tokens& part : parts) {
      ends.resize(std::max(ends.size(), std::size_t(part.slot) + 1));
      for (std::int32_t i = 0; i < part.n; ++i) pos.push_back(part.first + i), slots.push_back(part.slot);
      ends[std::size_t(part.slot)] = std::max(ends[std::size_t(part.slot)], part.first + part.n);
    }
    const auto n_slots = static_cast<std::uint32_t>(ends.size());
    std::vector<std::int32_t> pages(n_slots * s.pages);
    for (std::size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<std::int32_t>(i);
    std::ranges::shuffle(pages, rng_);
    const auto graph = cache_graph(s, n_slots, is_decode);
    auto k = normal(pos.size() * s.n_kv_heads * s.head_dim), v = normal(pos.size() * s.n_kv_heads * s.v_head_dim),
         q = normal(pos.size() * s.n_heads * s.head_dim);
    if (has_odd_heads) {
      for (std::uint32_t i = 0; i < s.head_dim; ++i) k[i] = 0, k[s.n_kv_heads * s.head_dim + i] *= 3e33f, q[i] = 0;
      for (std::uint32_t i = 0; i < s.v_head_dim; ++i) v[i] *= 1e-31f, v[s.n_kv_heads * s.v_head_dim + i] *= 1e-29f;
      k.back() = NAN, v[3] = -INFINITY;
    }
    const Memory given{{"act.k", bytes_of(k)},
                       {"act.v", bytes_of(v)},
                       {"act.q", bytes_of(q)},
                       {"state.k", cache(s, true, pages, ends)},
                       {"state.v", cache(s, false, pages, ends)},
                       {"request.pos", bytes_of(pos)},
                       {"request.slot", bytes_of(slots)},
                       {"request.pages", bytes_of(pages)}};
    const auto n = static_cast<std::uint32_t>(pos.size());
    auto wanted = run_graph(**ring::find_tier("t_cpu"), graph, n, given, {"state.k", "state.v", "act.y"}),
         got = run_graph(*GetParam(), graph, n, given, {"state.k", "state.v", "act.y"});
    EXPECT_FALSE(wanted["state.k"] == given.at("state.k"));
    EXPECT_TRUE(wanted["state.k"] == got["state.k"]);
    EXPECT_TRUE(wanted["state.v"] == got["state.v"]);
    EXPECT_EQ((has_odd_heads ? n_different_numbers : n_different)(wanted["act.y"], got["act.y"]), 0u);
  }
  std::mt19937 rng_{23};
};

#define SKIP_WITHOUT(kv) \
  if (!has_kernels(kv)) GTEST_SKIP() << "tier " << GetParam()->name << " has no kernels for " << (kv)

TEST_P(TierScaledCache, IntegersHaveTheBitsOfTCpu) {
  SKIP_WITHOUT("i16");
  expect_same({4, 2, 64, 64}, {{0, 300}}, true);
  expect_same({2, 1, 128, 128}, {{1, 129}, {0, 7}, {2, 383}}, true);
  expect_same({2, 1, 80, 80, 40, 20.0f}, {{0, 120, 20}, {2, 0, 3}, {1, 51}}, false);
}

TEST_P(TierScaledCache, IntegersHaveTheBitsOfTCpuInHeadsOfManySizes) {
  SKIP_WITHOUT("i16");
  const std::vector<Tokens> parts{{0, 126, 4}, {1, 0, 18}, {2, 255, 2}, {1, 30}};
  for (const Shape& s :
       {Shape{1, 1, 16, 16}, {6, 2, 96, 48, 130}, {4, 2, 32, 144, 0, 5.0f}, {1, 1, 272, 272, 3}, {2, 1, 512, 512}})
    expect_same(s, parts, false);
}

// Steps with prompts, which a tier may take in tiles: tokens of several slots in one, chunks that begin and end in them,
// windows that leave chunks out, heads of V wider than those of K.
TEST_P(TierScaledCache, IntegersHaveTheBitsOfTCpuInStepsWithPrompts) {
  SKIP_WITHOUT("i16");
  const std::vector<Tokens> parts{{0, 100, 40}, {1, 0, 21}, {2, 300, 1}, {3, 250, 9}};
  for (const Shape& s : {Shape{4, 2, 64, 64}, {2, 1, 128, 128, 40}, {4, 2, 32, 144, 0, 5.0f}, {1, 1, 256, 512, 140}})
    expect_same(s, parts, false);
  expect_same({1, 1, 48, 48}, {{0, 5, 64}}, false, true);
}

TEST_P(TierScaledCache, WritesOddHeadsOfIntegersAsTCpu) {
  SKIP_WITHOUT("i16");
  expect_same({2, 2, 32, 32}, {{0, 13, 5}, {1, 0}}, false, true);
  expect_same({2, 2, 144, 144}, {{0, 15}, {1, 16}}, true, true);
}

TEST_P(TierScaledCache, RotatedCodesHaveTheBitsOfTCpu) {
  SKIP_WITHOUT("k8v4");
  for (const char* kv : {"k8v4", "k4v4"}) {
    expect_same({4, 2, 64, 64, 0, 0, kv}, {{0, 300}}, true);
    expect_same({2, 1, 128, 128, 0, 0, kv}, {{1, 129}, {0, 7}, {2, 383}}, true);
    expect_same({9, 1, 128, 128, 0, 30.0f, kv}, {{0, 255, 2}, {1, 15}}, false);
    expect_same({2, 1, 256, 256, 40, 20.0f, kv}, {{0, 120, 10}, {2, 0, 3}, {1, 51}}, false);
    expect_same({3, 1, 64, 128, 130, 0, kv}, {{0, 126, 4}, {1, 30}}, false);
    expect_same({10, 1, 64, 256, 0, 0, kv}, {{0, 17}}, true);
  }
}

// As for integers; heads of V wider than those of K lie in tiles of their width.
TEST_P(TierScaledCache, RotatedCodesHaveTheBitsOfTCpuInStepsWithPrompts) {
  SKIP_WITHOUT("k8v4");
  const std::vector<Tokens> parts{{0, 100, 40}, {1, 0, 21}, {2, 300, 1}, {3, 250, 9}};
  for (const char* kv : {"k8v4", "k4v4"}) {
    expect_same({4, 2, 64, 64, 0, 0, kv}, parts, false);
    expect_same({2, 1, 128, 128, 40, 0, kv}, parts, false);
    expect_same({3, 1, 128, 256, 0, 5.0f, kv}, parts, false);
    expect_same({1, 1, 64, 256, 140, 0, kv}, parts, false);
    expect_same({1, 1, 64, 128, 0, 0, kv}, {{0, 5, 64}}, false, true);
  }
}

// More chunks than t_cuda has on their way to a merge, and a few.
constexpr std::uint32_t kManyChunks = 210, kManyPages = (kManyChunks + 1) * 8;
TEST_P(TierScaledCache, IntegersHaveTheBitsOfTCpuBehindManyChunks) {
  SKIP_WITHOUT("i16");
  expect_same({2, 1, 64, 64, 0, 0, "i16", kManyPages}, {{0, kManyChunks * 128 + 5}}, true);
  expect_same({1, 1, 16, 48, 0, 0, "i16", 296}, {{0, 36 * 128 + 5}}, true);
}
TEST_P(TierScaledCache, RotatedCodesHaveTheBitsOfTCpuBehindManyChunks) {
  SKIP_WITHOUT("k8v4");
  expect_same({2, 1, 64, 64, 0, 0, "k8v4", kManyPages}, {{0, kManyChunks * 128 + 5}}, true);
  expect_same({1, 1, 64, 256, 0, 0, "k4v4", 296}, {{0, 34 * 128 - 1}}, true);
}

// Several tokens of a slot in a step, as guesses are: behind so many chunks a tier may let them share a read of K and V.
// They go over an end of a chunk, and there are more of them than one workgroup takes.
TEST_P(TierScaledCache, RunsHaveTheBitsOfTCpu) {
  for (const char* kv : {"i16", "k8v4", "k4v4"}) {
    SKIP_WITHOUT(kv);
    const std::vector<Tokens> parts{{0, 16 * 128 - 3, 9}, {1, 3, 2}, {2, 2500, 5}, {3, 1800}};
    for (Shape s : {Shape{8, 4, 64, 64}, {12, 4, 64, 128, 0, 5.0f}, {4, 4, 128, 256, 2000}, {8, 2, 256, 256}}) {
      s.kv = kv, s.pages = 160;
      expect_same(s, parts, false);
    }
    expect_same({8, 4, 128, 128, 0, 0, kv, 160}, {{0, 2400, 6}, {1, 0, 3}}, false, true);
  }
}

TEST_P(TierScaledCache, WritesOddHeadsOfRotatedCodesAsTCpu) {
  SKIP_WITHOUT("k8v4");
  for (const char* kv : {"k8v4", "k4v4"}) {
    expect_same({2, 2, 64, 64, 0, 0, kv}, {{0, 13, 5}, {1, 0}}, false, true);
    expect_same({2, 2, 128, 256, 0, 0, kv}, {{0, 15}, {1, 16}}, true, true);
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, TierScaledCache, ::testing::ValuesIn(other_tiers()),
                         [](const auto& info) { return info.param->name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TierScaledCache);

}  // namespace
}  // namespace zinc_rt::tier_scaled_cache
