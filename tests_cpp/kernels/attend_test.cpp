// The fast sets' attention gives the reference's bits: widths, groups of heads, cache types, windows, tiles of one slot
// and of several, and histories at the borders of pages and chunks.
#include <bit>

#include <fmt/format.h>

#include "harness.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::kernel_test {
namespace {

struct Shape {
  DType kv = DType::kF32;
  std::uint32_t n_heads = 2, n_kv_heads = 1, head_dim = 64, v_head_dim = 64, window = 0;
  float softcap = 0, scale = 0.17f;
};
struct Tokens {
  std::vector<std::int32_t> pos, slot;
};
constexpr std::uint32_t kPages = 64;  // a slot: 1,024 tokens

class Attend : public ::testing::Test {
 protected:
  void SetUp() override {
    if (fast_sets().empty()) GTEST_SKIP() << "this processor runs the reference only";
  }

  // What is not of a history is NaN: it may be read, and must not be seen.
  Bytes cache(const Shape& s, std::uint32_t dim, const Tokens& tokens, std::uint64_t& pitch) {
    const std::uint64_t cell = row_bytes(s.kv, std::uint64_t{s.n_kv_heads} * dim);
    pitch = 16 * cell + 64;
    Bytes memory(n_slots_ * kPages * pitch, std::byte{0xff});
    for (std::size_t t = 0; t < tokens.pos.size(); ++t) {
      for (std::int32_t j = 0; j <= tokens.pos[t]; ++j) {
        std::byte* at = memory.data() +
                        static_cast<std::uint64_t>(pages_[std::size_t(tokens.slot[t]) * kPages + j / 16]) * pitch +
                        j % 16 * cell;
        if (at[cell - 1] != std::byte{0xff} || at[0] != std::byte{0xff}) continue;
        const auto values = weights(random_, s.kv, {s.n_kv_heads * dim}, 0.3);
        std::memcpy(at, values.bytes.data(), cell);
      }
    }
    return memory;
  }

  void check(const Shape& s, const Tokens& tokens, const std::string& what) {
    n_slots_ = std::uint32_t(*std::ranges::max_element(tokens.slot)) + 1;
    pages_.resize(n_slots_ * kPages);
    for (std::size_t i = 0; i < pages_.size(); ++i) pages_[i] = std::int32_t(i);
    std::ranges::shuffle(pages_, random_.rng);
    std::uint64_t k_pitch, v_pitch;
    const Bytes k = cache(s, s.head_dim, tokens, k_pitch), v = cache(s, s.v_head_dim, tokens, v_pitch);
    const auto q = random_.normal(tokens.pos.size() * s.n_heads * s.head_dim, 1.5);
    compare(s, tokens, q, k, k_pitch, v, v_pitch, what);
  }

  void compare(const Shape& s, const Tokens& tokens, const std::vector<float>& q, const Bytes& k, std::uint64_t k_pitch,
               const Bytes& v, std::uint64_t v_pitch, const std::string& what) {
    const auto n = std::uint32_t(tokens.pos.size());
    const auto run = [&](void (*attend)(const cpu::AttendTile&)) {
      std::vector<float> y(std::size_t{n} * s.n_heads * s.v_head_dim, 7.0f);
      std::vector<float> scratch(cpu::attend_scratch_floats(s.head_dim, s.v_head_dim), NAN);
      for (std::uint32_t kv_head = 0; kv_head < s.n_kv_heads; ++kv_head)
        attend({{s.n_heads, s.n_kv_heads, s.head_dim, s.v_head_dim, s.scale, s.window, s.softcap},
                q.data(),
                k.data(),
                v.data(),
                s.kv,
                s.kv,
                k_pitch,
                v_pitch,
                tokens.pos.data(),
                tokens.slot.data(),
                pages_.data(),
                kPages,
                n,
                kv_head,
                y.data(),
                scratch.data()});
      return y;
    };
    const auto expected = run(cpu::attend);
    for (const cpu::KernelSet* set : fast_sets()) {
      const auto got = run(set->attend);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if (std::isnan(expected[i]) && std::isnan(got[i])) continue;
        ASSERT_EQ(std::bit_cast<std::uint32_t>(expected[i]), std::bit_cast<std::uint32_t>(got[i]))
            << set->name << " " << what << ", token " << i / (s.n_heads * s.v_head_dim) << " value "
            << i % (s.n_heads * s.v_head_dim) << ": " << expected[i] << " and " << got[i];
      }
    }
  }

  Random random_{11};
  std::uint32_t n_slots_ = 1;
  std::vector<std::int32_t> pages_;
};

const Tokens kEdgeTokens{{0, 1, 7, 8, 15, 16, 127, 128, 129, 255, 256, 1000}, std::vector<std::int32_t>(12, 0)};

Tokens prefill(std::int32_t first, std::int32_t n) {
  Tokens tokens;
  for (std::int32_t i = 0; i < n; ++i) tokens.pos.push_back(first + i), tokens.slot.push_back(0);
  return tokens;
}

TEST_F(Attend, Widths) {
  for (const DType kv : {DType::kF32, DType::kF16, DType::kQ8_0})
    for (const auto& [k, v] : {std::pair{16u, 16u},
                               {20u, 12u},
                               {1u, 17u},
                               {32u, 96u},
                               {64u, 64u},
                               {80u, 48u},
                               {128u, 128u},
                               {256u, 256u},
                               {288u, 32u},
                               {520u, 512u}}) {
      if (kv == DType::kQ8_0 && (k % 32 != 0 || v % 32 != 0)) continue;
      check({.kv = kv, .head_dim = k, .v_head_dim = v}, kEdgeTokens, fmt::format("{} {} {}", to_string(kv), k, v));
    }
}

TEST_F(Attend, GroupsOfHeads) {
  for (const std::uint32_t group : {1u, 2u, 3u, 4u, 5u, 8u, 70u})
    for (const std::uint32_t n_kv_heads : {1u, 3u}) {
      const Shape s{.n_heads = group * n_kv_heads, .n_kv_heads = n_kv_heads, .head_dim = 32, .v_head_dim = 32};
      check(s, kEdgeTokens, fmt::format("{} of {}", group, n_kv_heads));
      check(s, {{300}, {0}}, fmt::format("{} of {}, one token", group, n_kv_heads));
    }
}

// Decoding: halves are read where they lie, by as many heads at once as registers are for.
TEST_F(Attend, OneTokenOverHalves) {
  for (std::uint32_t group = 1; group <= 7; ++group)
    for (const auto& [k, v] : {std::pair{64u, 64u}, {128u, 128u}, {272u, 48u}})
      for (const std::uint32_t window : {0u, 200u})
        for (const std::int32_t pos : {15, 70, 130, 1000})
          check({.kv = DType::kF16,
                 .n_heads = 2 * group,
                 .n_kv_heads = 2,
                 .head_dim = k,
                 .v_head_dim = v,
                 .window = window},
                {{pos}, {0}}, fmt::format("{} heads of {} and {} at {}, window {}", group, k, v, pos, window));
}

TEST_F(Attend, TilesOfAPromptCrossPagesAndChunks) {
  for (const std::int32_t first : {0, 3, 100, 112, 120, 127, 128, 250})
    for (const std::int32_t n : {1, 2, 5, 16, 40})
      for (const std::uint32_t window : {0u, 1u, 5u, 24u, 128u})
        check({.kv = DType::kF16, .n_heads = 3, .head_dim = 32, .v_head_dim = 32, .window = window}, prefill(first, n),
              fmt::format("{} tokens from {}, window {}", n, first, window));
}

// Rows from one to more than scratch memory is for at once, at page and chunk borders, in groups that do and do not
// divide a block of 16.
TEST_F(Attend, RowsOfASlot) {
  for (const std::uint32_t group : {1u, 3u, 8u})
    for (std::int32_t n = 1; n <= 24; ++n)
      for (const std::int32_t first : {0, 57, 121})
        check({.kv = DType::kF16, .n_heads = group, .head_dim = 32, .v_head_dim = 48}, prefill(first, n),
              fmt::format("{} tokens from {}, {} heads", n, first, group));
}

TEST_F(Attend, BlocksOfRowsOfAllWidths) {
  for (const DType kv : {DType::kF32, DType::kF16, DType::kQ8_0})
    for (const auto& [k, v] :
         {std::pair{1u, 1u}, {7u, 23u}, {15u, 33u}, {33u, 15u}, {64u, 64u}, {80u, 128u}, {256u, 32u}, {300u, 80u}})
      for (const std::uint32_t group : {3u, 7u}) {
        if (kv == DType::kQ8_0 && (k % 32 != 0 || v % 32 != 0)) continue;
        check({.kv = kv, .n_heads = 2 * group, .n_kv_heads = 2, .head_dim = k, .v_head_dim = v}, prefill(120, 13),
              fmt::format("{} {} {}, {} heads", to_string(kv), k, v, group));
      }
}

TEST_F(Attend, BlocksOfRowsWithWindowAndSoftcap) {
  for (const std::uint32_t window : {0u, 1u, 15u, 17u, 100u, 128u, 200u})
    for (const float softcap : {0.0f, 2.0f})
      for (const float scale : {0.17f, 40.0f})  // the larger one: exponentials that are denormal or 0
        for (const std::int32_t first : {0, 90, 245})
          check({.n_heads = 3, .head_dim = 20, .v_head_dim = 20, .window = window, .softcap = softcap, .scale = scale},
                prefill(first, 16),
                fmt::format("window {} softcap {} scale {} from {}", window, softcap, scale, first));
}

TEST_F(Attend, BlocksOfRowsInAnyOrder) {
  Tokens tokens = prefill(100, 60);
  for (int round = 0; round < 4; ++round) {
    std::ranges::shuffle(tokens.pos, random_.rng);
    for (const std::uint32_t window : {0u, 20u})
      check({.n_heads = 3, .head_dim = 16, .v_head_dim = 16, .window = window}, tokens,
            fmt::format("shuffled {}, window {}", round, window));
  }
}

TEST_F(Attend, Windows) {
  for (const DType kv : {DType::kF32, DType::kQ8_0})
    for (const std::uint32_t window : {1u, 2u, 15u, 16u, 17u, 127u, 128u, 129u, 300u, 5000u})
      check({.kv = kv, .window = window}, kEdgeTokens, fmt::format("{} window {}", to_string(kv), window));
}

TEST_F(Attend, Softcap) {
  for (const float softcap : {0.01f, 0.5f, 3.0f, 50.0f})
    for (const float scale : {0.17f, 2.0f, -1.0f})
      check({.window = 60, .softcap = softcap, .scale = scale}, kEdgeTokens,
            fmt::format("softcap {} {}", softcap, scale));
}

TEST_F(Attend, SeveralSlotsInATile) {
  check({.n_heads = 3}, {{5, 300, 6, 7, 128, 129, 130, 0}, {0, 1, 0, 0, 2, 2, 2, 3}}, "mixed slots");
  check({.kv = DType::kF16, .n_heads = 6, .n_kv_heads = 2}, {{900, 17, 18, 40}, {2, 1, 1, 0}}, "mixed slots");
}

// K holds the scores and V the unit vectors, so that y is the exponentials by the same factor.
TEST_F(Attend, ExponentialsOverTheirRange) {
  const Shape s{.n_heads = 1, .head_dim = 1, .v_head_dim = 128, .scale = 1.0f};
  const Tokens tokens{{127}, {0}};
  pages_.resize(kPages);
  for (std::size_t i = 0; i < pages_.size(); ++i) pages_[i] = std::int32_t(i);
  std::vector<float> v(128 * 128);
  for (std::size_t j = 0; j < 128; ++j) v[j * 129] = 1.0f;
  for (int round = 0; round < 2000; ++round) {
    std::vector<float> k(128);
    const float range = round % 4 == 0 ? 150.0f : round % 4 == 1 ? 20.0f : round % 4 == 2 ? 1.0f : 1e-3f;
    for (float& x : k) x = -range * static_cast<float>(random_.below(1u << 24)) * 0x1p-24f;
    k[random_.below(128)] = 0.0f;
    compare(s, tokens, {1.0f}, to_bytes(k), 64, to_bytes(v), 16 * 128 * 4, "exponentials");
    const Tokens block = prefill(112, 16);
    compare(s, block, std::vector<float>(16, 1.0f), to_bytes(k), 64, to_bytes(v), 16 * 128 * 4, "of a block");
  }
}

TEST_F(Attend, ScoresThatAreNotFinite) {
  const Shape s{.n_heads = 1, .head_dim = 1, .v_head_dim = 1, .scale = 1.0f};
  pages_.resize(kPages);
  for (std::size_t i = 0; i < pages_.size(); ++i) pages_[i] = std::int32_t(i);
  const float special[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e38f, -1e38f, 1e-42f, 1.0f};
  for (int round = 0; round < 3000; ++round) {
    const auto pos = std::int32_t(random_.below(300));
    auto k = random_.normal(304), v = random_.normal(304);
    for (std::uint32_t i = 0; i < 1u << random_.below(9); ++i) k[random_.below(304)] = special[random_.below(9)];
    if (round % 3 == 0) std::ranges::fill(k, special[random_.below(3)]);
    if (round % 5 == 0) v[random_.below(304)] = special[random_.below(9)];
    compare(s, {{pos}, {0}}, {1.0f}, to_bytes(k), 64, to_bytes(v), 64, fmt::format("round {}", round));
    const Tokens block = prefill(std::max(pos - 15, 0), std::min(pos + 1, 16));
    compare(s, block, std::vector<float>(block.pos.size(), 1.0f), to_bytes(k), 64, to_bytes(v), 64,
            fmt::format("round {}, a block", round));
  }
}

}  // namespace
}  // namespace zinc_rt::kernel_test
