// ROPE, KV_WRITE_BATCHED and their fused form.
#include "harness.h"

namespace zinc_rt::kernel_test {
namespace {

std::vector<float> rope_table(std::uint32_t positions, std::uint32_t n_rot) {
  std::vector<float> table;
  for (std::uint32_t p = 0; p < positions; ++p)
    for (std::uint32_t i = 0; i < n_rot / 2; ++i) {
      const double angle = p * std::pow(10000.0, -2.0 * i / n_rot);
      table.push_back(float(std::cos(angle)));
      table.push_back(float(std::sin(angle)));
    }
  return table;
}

Case rope(const std::vector<float>& x, std::uint32_t d, const std::vector<std::int32_t>& pos, int head_dim, int n_rot,
          int neox) {
  return {Op::ROPE,
          {f32({kTokens, d}, x), i32({kTokens}, pos), f32({40, std::uint32_t(n_rot)}, rope_table(40, n_rot))},
          {{DType::kF32, {kTokens, d}}},
          {{"head_dim", head_dim}, {"n_rot", n_rot}, {"neox", neox}},
          {std::uint32_t(pos.size()), 0}};
}

TEST(Rope, MatchesFloat64) {
  Random random(1);
  for (const int neox : {0, 1})
    for (const auto& [head_dim, n_rot] : {std::pair{16, 16}, {64, 64}, {64, 32}, {2, 2}, {80, 6}}) {
      const std::uint32_t d = 3 * std::uint32_t(head_dim);
      const std::vector<std::int32_t> pos{0, 1, 39, 17};
      const auto x = random.normal(4 * d);
      std::vector<double> expected(x.begin(), x.end());
      for (std::size_t t = 0; t < 4; ++t)
        for (int h = 0; h < 3; ++h)
          for (int i = 0; i < n_rot / 2; ++i) {
            const std::size_t base = t * d + std::size_t(h * head_dim);
            const std::size_t a = base + std::size_t(neox ? i : 2 * i),
                              b = base + std::size_t(neox ? i + n_rot / 2 : 2 * i + 1);
            const double angle = pos[t] * std::pow(10000.0, -2.0 * i / n_rot);
            expected[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
            expected[b] = x[b] * std::cos(angle) + x[a] * std::sin(angle);
          }
      auto c = rope(x, d, pos, head_dim, n_rot, neox);
      const auto fresh = run(c);
      expect_near(fresh[0], expected, 1e-6, 1e-6, "rope");
      expect_rows_independent(c);
      c.outputs = {update(0)};
      EXPECT_EQ(run(c), fresh);
    }
}

TEST(Rope, PositionZeroKeepsTheBits) {
  Random random(2);
  const auto x = random.normal(64);
  EXPECT_EQ(as<float>(run(rope(x, 64, {0}, 64, 64, 1))[0]), x);
}

TEST(Rope, PositionsOutsideTheTableGiveNan) {
  const auto y = as<float>(run(rope(std::vector<float>(48, 1.0f), 16, {40, -1, 39}, 16, 16, 0))[0]);
  for (std::size_t i = 0; i < 48; ++i) EXPECT_EQ(std::isnan(y[i]), i < 32);
}

struct Cache {
  DType type;
  std::uint32_t pages = 6, width;
  std::uint64_t pitch() const { return 16 * row_bytes(type, width) + 64; }  // a page of several layers
  Tensor tensor() const { return {type, {pages, 16, width}, Bytes(pages * pitch(), std::byte{0x5a}), pitch()}; }
};

Case kv_write(DType type, const std::vector<float>& k, const std::vector<float>& v,
              const std::vector<std::int32_t>& pos, const std::vector<std::int32_t>& slot,
              const std::vector<std::int32_t>& pages) {
  return {Op::KV_WRITE_BATCHED,
          {f32({kTokens, 64}, k), f32({kTokens, 128}, v), i32({kTokens}, pos), i32({kTokens}, slot), i32({2, 3}, pages),
           Cache{type, 6, 64}.tensor(), Cache{type, 6, 128}.tensor()},
          {update(5), update(6)},
          {{"head_dim", 32}},
          {std::uint32_t(pos.size()), 0}};
}
const std::vector<std::int32_t> kPages{4, 0, 2, 5, 3, 1};

class KvWrite : public ::testing::TestWithParam<DType> {};

TEST_P(KvWrite, WritesItsCellsAndNoOther) {
  Random random(3);
  const std::vector<std::int32_t> pos{0, 15, 16, 47, 16, 31}, slot{0, 0, 0, 0, 1, 1};
  const auto k = random.normal(6 * 64), v = random.normal(6 * 128);
  const auto c = kv_write(GetParam(), k, v, pos, slot, kPages);
  const auto got = run(c);
  for (const int part : {0, 1}) {
    const std::uint32_t width = part == 0 ? 64 : 128;
    const auto& x = part == 0 ? k : v;
    const Cache cache{GetParam(), 6, width};
    const std::uint64_t cell = row_bytes(GetParam(), width);
    std::vector<bool> written(got[part].size(), false);
    for (std::size_t t = 0; t < 6; ++t) {
      const auto page = std::uint64_t(kPages[std::size_t(slot[t] * 3 + pos[t] / 16)]);
      const std::uint64_t at = page * cache.pitch() + std::uint64_t(pos[t] % 16) * cell;
      for (std::uint64_t i = 0; i < cell; ++i) written[at + i] = true;
      const auto stored = values(GetParam(), Bytes(got[part].begin() + at, got[part].begin() + at + cell));
      for (std::uint32_t i = 0; i < width; ++i) {
        const double want = x[t * width + i];
        double amax = 0;
        for (std::uint32_t b = 0; b < 32; ++b) amax = std::max(amax, std::abs(double(x[t * width + i / 32 * 32 + b])));
        const double bound = GetParam() == DType::kF32   ? 0
                             : GetParam() == DType::kF16 ? std::abs(want) * 0x1p-11 + 0x1p-25
                                                         : amax / 127 * (0.5 + 127 * 0x1p-11);
        EXPECT_NEAR(stored[i], want, bound) << t << " " << i;
      }
    }
    for (std::size_t i = 0; i < written.size(); ++i)
      ASSERT_TRUE(written[i] || got[part][i] == std::byte{0x5a}) << "byte " << i << " outside the cells";
  }
}
INSTANTIATE_TEST_SUITE_P(Types, KvWrite, ::testing::Values(DType::kF32, DType::kF16, DType::kQ8_0),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(KvWriteQ8, OddBlocks) {
  const auto stored = [](std::vector<float> block) {
    block.resize(64, 0.0f);
    const auto got = run(kv_write(DType::kQ8_0, block, std::vector<float>(128), {0}, {0}, kPages));
    const auto at = got[0].begin() + std::ptrdiff_t(4 * Cache{DType::kQ8_0, 6, 64}.pitch());
    return values(DType::kQ8_0, Bytes(at, at + 34));
  };
  for (const double v : stored({})) EXPECT_EQ(v, 0);
  for (const double v : stored({1e-12f, -1e-12f})) EXPECT_EQ(v, 0);
  EXPECT_NEAR(stored({1e-4f, -5e-5f})[0], 1e-4, 1e-4 * 0.05);  // a subnormal scale
  EXPECT_NEAR(stored({1e-4f, -5e-5f})[1], -5e-5, 1e-4 * 0.05);
  for (const float bad : {NAN, INFINITY, -INFINITY, 1e30f})
    for (const double v : stored({1.0f, bad})) EXPECT_TRUE(std::isnan(v)) << bad;
}

// The fused op means: norms of the heads, rotations, the write.
TEST(FusedRopeKvWrite, IsItsOpsInOrder) {
  Random random(4);
  const std::uint32_t nq = 128, nk = 64, nv = 128;
  for (const DType type : {DType::kF32, DType::kF16, DType::kQ8_0})
    for (const int norms : {0, 1, 2, 3}) {
      const std::vector<std::int32_t> pos{3, 15, 16, 30}, slot{0, 0, 0, 1};
      const auto q = f32({kTokens, nq}, random.normal(4 * nq)), k = f32({kTokens, nk}, random.normal(4 * nk)),
                 v = f32({kTokens, nv}, random.normal(4 * nv)), table = f32({40, 16}, rope_table(40, 16));
      const auto w = f32({32}, random.normal(32));
      const auto q_norm = norms & 1 ? w : absent(), k_norm = norms & 2 ? w : absent();
      const Case fused{Op::RMS_NORM_FUSED_ROPE_KV_WRITE,
                       {q, k, v, q_norm, k_norm, i32({kTokens}, pos), i32({kTokens}, slot), table, i32({2, 3}, kPages),
                        Cache{type, 6, nk}.tensor(), Cache{type, 6, nv}.tensor()},
                       {{DType::kF32, {kTokens, nq}}, update(9), update(10)},
                       {{"eps", 1e-6f}, {"head_dim", 32}, {"n_rot", 16}, {"neox", 1}},
                       {4, 0}};
      const auto rotated = [&](const Tensor& x, const Tensor& norm) {
        Tensor y = x;
        const std::uint32_t d = x.dims[1].n;
        if (!norm.absent)
          y.bytes = run({Op::RMS_NORM, {x, norm}, {{DType::kF32, x.dims}}, {{"eps", 1e-6f}, {"group", 32}}, {4, 0}})[0];
        Case c = rope(as<float>(y.bytes), d, pos, 32, 16, 1);
        y.bytes = run(c)[0];
        return y;
      };
      const auto write =
          run(kv_write(type, as<float>(rotated(k, k_norm).bytes), as<float>(v.bytes), pos, slot, kPages));
      const auto got = run(fused);
      EXPECT_EQ(got[0], rotated(q, q_norm).bytes);
      EXPECT_EQ(got[1], write[0]);
      EXPECT_EQ(got[2], write[1]);
    }
}

}  // namespace
}  // namespace zinc_rt::kernel_test
