// The fast sets' LINEAR gives the reference's bits, on row panels and on plain matrices: every format, sizes around its
// tiles, and blocks of random bytes.

#include <bit>

#include <fmt/format.h>

#include "harness.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/panels.h"

namespace zinc_rt::kernel_test {
namespace {

class Panel : public ::testing::TestWithParam<const cpu::QuantFormat*> {};

std::vector<float> linear(cpu::LinearArgs args, const cpu::KernelSet* set, std::uint32_t m, std::uint32_t cut) {
  std::vector<float> y(std::size_t{args.n} * m), scratch(args.k);
  args.y = y.data();
  args.y_pitch = m;
  args.scratch = scratch.data();
  args.set = set;
  // In two parts, so that a tile does not begin at row 0 alone.
  linear_rows(args, 0, cut);
  linear_rows(args, cut, m);
  return y;
}

void expect_same_bits(const cpu::QuantFormat& format, const Bytes& w, const Bytes& x, std::uint32_t n, std::uint32_t k,
                      std::uint32_t m, const std::vector<float>& bias, const std::string& what) {
  const cpu::LinearArgs plain{w.data(),
                              format.dtype,
                              false,
                              m,
                              bias.empty() ? nullptr : bias.data(),
                              x.data(),
                              format.act,
                              row_bytes(format.act, k),
                              k,
                              n,
                              nullptr,
                              m,
                              nullptr};
  Bytes panels(w.size());
  cpu::pack_matrix(format.dtype, m, k, w.data(), panels.data());
  cpu::LinearArgs packed = plain;
  packed.w = panels.data();
  packed.packed = true;
  const auto expected = linear(plain, nullptr, m, m / 3);
  for (const cpu::KernelSet* set : fast_sets())
    for (const auto& args : {plain, packed}) {
      const auto got = linear(args, set, m, m / 3);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if (std::isnan(expected[i]) && std::isnan(got[i])) continue;
        ASSERT_EQ(std::bit_cast<std::uint32_t>(expected[i]), std::bit_cast<std::uint32_t>(got[i]))
            << set->name << " " << what << (args.packed ? ", packed" : "") << ", token " << i / m << " row " << i % m
            << ": " << expected[i] << " and " << got[i];
      }
    }
}

TEST_P(Panel, HasTheBitsOfTheReference) {
  if (fast_sets().empty()) GTEST_SKIP() << "this processor runs the reference only";
  const cpu::QuantFormat& format = *GetParam();
  const std::uint32_t block = traits(format.dtype).block_elems;
  Random random(static_cast<unsigned>(format.dtype) + 1);
  for (const std::uint32_t k : {block, 256u, 256u + block, 1024u})
    for (const std::uint32_t n : {1u, 2u, 3u, 4u, 5u, 7u, 9u, 16u, 17u, 63u, 65u})
      for (const std::uint32_t m : {1u, 15u, 16u, 17u, 50u}) {
        const auto w = weights(random, format.dtype, {m, k});
        const auto x = quantized(random.normal(std::size_t{n} * k), format.act, k);
        const auto bias = m % 2 != 0 ? random.normal(m) : std::vector<float>();
        expect_same_bits(format, w.bytes, x, n, k, m, bias,
                         fmt::format("{} n {} k {} m {}", to_string(format.dtype), n, k, m));
      }
}

// More rows of x than any set takes at once.
TEST_P(Panel, HasTheBitsOfTheReferenceInManyRows) {
  if (fast_sets().empty()) GTEST_SKIP() << "this processor runs the reference only";
  const cpu::QuantFormat& format = *GetParam();
  const std::uint32_t k = 256 + traits(format.dtype).block_elems, m = 33;
  Random random(static_cast<unsigned>(format.dtype) + 2);
  for (const std::uint32_t n : {96u, 97u, 193u, 271u}) {
    const auto w = weights(random, format.dtype, {m, k});
    const auto x = quantized(random.normal(std::size_t{n} * k), format.act, k);
    expect_same_bits(format, w.bytes, x, n, k, m, {}, fmt::format("{} n {}", to_string(format.dtype), n));
  }
}

// Any bytes are a block: scales at their extremes, infinities, subnormals. Activations end at -127 (act_q8.h).
TEST_P(Panel, HasTheBitsOfTheReferenceOnAnyBytes) {
  if (fast_sets().empty()) GTEST_SKIP() << "this processor runs the reference only";
  const cpu::QuantFormat& format = *GetParam();
  std::mt19937 bytes(static_cast<unsigned>(format.dtype) + 7);
  const std::uint32_t n = 17, k = 512, m = 33;
  Random random(3);
  for (int round = 0; round < 40; ++round) {
    Bytes w(row_bytes(format.dtype, k) * m);
    for (auto& b : w) b = static_cast<std::byte>(round == 0 ? 0xFF : round == 1 ? 0x80 : bytes());
    if (format.dtype == DType::kFixed16)  // made by a loader: no high digit is -128
      for (std::size_t i = 0; i < w.size(); ++i)
        if (i % sizeof(BlockFixed16) < 256 && w[i] == std::byte{0x80}) w[i] = std::byte{0x81};
    auto x = quantized(random.normal(std::size_t{n} * k), format.act, k);
    const int extreme = round % 2 == 0 ? 127 : -127;
    for (std::uint32_t t = 0; t < n; ++t) {
      std::byte* row = x.data() + t * row_bytes(format.act, k);
      for (std::uint32_t i = 0; i < k; ++i) {
        if (format.act == DType::kQ8A32) {
          auto& b = reinterpret_cast<ActBlockQ8A32*>(row)[i / 32];
          b.sum += extreme - b.qs[i % 32];
          b.qs[i % 32] = static_cast<std::int8_t>(extreme);
        } else if (format.act == DType::kQ16A256) {
          auto& b = reinterpret_cast<ActBlockQ16A256*>(row)[i / 256];
          b.high[i % 256] = static_cast<std::int8_t>(extreme);
          b.low[i % 256] = static_cast<std::int8_t>(extreme < 0 ? -128 : 127);
        } else {
          auto& b = reinterpret_cast<ActBlockQ8A256*>(row)[i / 256];
          b.sums[i % 256 / 16] = static_cast<std::int16_t>(b.sums[i % 256 / 16] + extreme - b.qs[i % 256]);
          b.qs[i % 256] = static_cast<std::int8_t>(extreme);
        }
      }
    }
    expect_same_bits(format, w, x, n, k, m, {}, fmt::format("{} round {}", to_string(format.dtype), round));
  }
}

TEST_P(Panel, IsReadBackRowByRow) {
  const cpu::QuantFormat& format = *GetParam();
  const std::uint32_t block = traits(format.dtype).block_elems, m = 37;
  Random random(5);
  for (const std::uint32_t k : {block, 256u + block, 512u}) {
    const auto w = weights(random, format.dtype, {m, k});
    Bytes panels(w.bytes.size());
    cpu::pack_matrix(format.dtype, m, k, w.bytes.data(), panels.data());
    std::vector<float> expected(k), got(k);
    for (std::uint32_t row = 0; row < m; ++row) {
      format.dequantize_row(w.bytes.data() + row * row_bytes(format.dtype, k), expected.data(), k);
      cpu::dequantize_packed_row(format.dtype, m, k, panels.data(), row, got.data());
      ASSERT_EQ(std::memcmp(expected.data(), got.data(), k * sizeof(float)), 0) << k << ", row " << row;
    }
  }
}

TEST(Int8Products, AreCountedByRounds) {
  EXPECT_EQ(ring::int8_products_of(**ring::find_kernel_set("ref")), nullptr);
  for (const cpu::KernelSet* set : fast_sets()) {
    const auto products = ring::int8_products_of(*set);
    if (std::string_view(set->name).starts_with("neon")) continue;  // no loop for 64-bit ARM yet
    ASSERT_NE(products, nullptr) << set->name;
    EXPECT_EQ(products(0), 0u) << set->name;
    EXPECT_GT(products(1), 0u) << set->name;
    EXPECT_EQ(products(7), 7 * products(1)) << set->name;
  }
}

// Forms for arithmetic `fast` that have products of quantized weights of their own.
class FastPanel : public ::testing::TestWithParam<const cpu::QuantFormat*> {
 protected:
  static constexpr std::uint32_t kMany = 1 << 20;

  void SetUp() override {
    for (const auto* set : fast_sets())
      if (const auto* fast = ring::fast_form_of(*set))
        if (fast->rows->rounds_x(GetParam()->dtype, GetParam()->act, kMany)) sets_.push_back(fast);
    if (sets_.empty()) GTEST_SKIP() << "no kernels of arithmetic fast for quantized weights run on this processor";
  }

  struct Product {
    std::uint32_t n, k, m;
    Bytes w, x;
    std::vector<float> bias;
    bool packed;
  };
  Product random_product(std::uint32_t n, std::uint32_t k, std::uint32_t m, bool packed) {
    const auto& format = *GetParam();
    Product p{n,
              k,
              m,
              weights(random_, format.dtype, {m, k}).bytes,
              quantized(random_.normal(std::size_t{n} * k), format.act, k),
              m % 2 != 0 ? random_.normal(m) : std::vector<float>(),
              packed};
    return p;
  }
  cpu::LinearArgs args_of(const Product& p, const void* w) const {
    const auto& format = *GetParam();
    return {w,
            format.dtype,
            p.packed,
            p.m,
            p.bias.empty() ? nullptr : p.bias.data(),
            p.x.data(),
            format.act,
            row_bytes(format.act, p.k),
            p.k,
            p.n,
            nullptr,
            p.m,
            nullptr};
  }
  std::vector<float> exact(Product p) const {
    p.packed = false;
    return linear(args_of(p, p.w.data()), nullptr, p.m, p.m / 3);
  }
  // As LINEAR has it; into y, if it is given.
  std::vector<float> fast(const Product& p, const cpu::KernelSet& set, float* y = nullptr,
                          std::uint32_t y_pitch = 0) const {
    const auto& format = *GetParam();
    Bytes panels(p.w.size());
    cpu::pack_matrix(format.dtype, p.m, p.k, p.w.data(), panels.data());
    auto args = args_of(p, p.packed ? panels.data() : p.w.data());
    const std::uint64_t pitch = cpu::bf16_row_bytes(p.k);
    Bytes rounded(p.n * pitch, std::byte{0xFF});
    if (set.rows->rounds_x(format.dtype, format.act, p.n)) {
      for (std::uint32_t t = 0; t < p.n; ++t)
        set.rows->round_x(p.x.data() + t * args.x_pitch, format.act, rounded.data() + t * pitch, p.k);
      args.x = rounded.data();
      args.x_dtype = DType::kBF16;
      args.x_pitch = pitch;
    }
    if (y == nullptr) return linear(args, &set, p.m, p.m / 3);
    args.y = y;
    args.y_pitch = y_pitch;
    args.set = &set;
    linear_rows(args, 0, 64);
    linear_rows(args, 64, p.m);
    return {};
  }

  // Each value of w and of x is rounded by up to 2^-8 of itself, mostly by chance: see FastFloatLinear. Weights of one
  // magnitude, as ternary ones are, are all rounded by the same part: so is their sum.
  void check_near(const Product& p, const cpu::KernelSet& set) const {
    const auto& format = *GetParam();
    std::vector<float> w(std::size_t{p.m} * p.k), x(std::size_t{p.n} * p.k);
    for (std::uint32_t r = 0; r < p.m; ++r)
      format.dequantize_row(p.w.data() + r * row_bytes(format.dtype, p.k), w.data() + r * p.k, p.k);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (format.act == DType::kQ8A32) {
        const auto& block = reinterpret_cast<const ActBlockQ8A32*>(p.x.data())[i / 32];
        x[i] = block.d * block.qs[i % 32];
      } else {
        const auto& block = reinterpret_cast<const ActBlockQ8A256*>(p.x.data())[i / 256];
        x[i] = block.d * block.qs[i % 256];
      }
    }
    const auto expected = exact(p), got = fast(p, set);
    EXPECT_NE(expected, got) << "no other arithmetic was used";
    for (std::size_t i = 0; i < got.size(); ++i) {
      double squares = 0, sum = 0;
      for (std::uint32_t k = 0; k < p.k; ++k) {
        const double v = double{w[i % p.m * p.k + k]} * x[i / p.m * p.k + k];
        squares += v * v;
        sum += v;
      }
      ASSERT_NEAR(expected[i], got[i],
                  (8 * std::sqrt(squares) + 2 * std::abs(sum)) / 512 + 1e-6 * std::abs(expected[i]))
          << fmt::format("{} n {} k {} m {}{}: row {} of w, row {} of x", set.name, p.n, p.k, p.m,
                         p.packed ? ", packed" : "", i % p.m, i / p.m);
    }
  }

  std::vector<const cpu::KernelSet*> sets_;
  Random random_{9};
};

TEST_P(FastPanel, IsNearTheReference) {
  const std::uint32_t block = traits(GetParam()->dtype).block_elems;
  for (const auto* set : sets_)
    for (const std::uint32_t k : {block, 256u, 256u + block, 768u})
      for (const std::uint32_t n : {32u, 33u, 48u, 63u, 65u})
        for (const std::uint32_t m : {1u, 15u, 17u, 50u, 64u})
          for (const bool packed : {false, true})
            ASSERT_NO_FATAL_FAILURE(check_near(random_product(n, k, m, packed), *set));
}

// More rows of x than are taken at once, more panels, and more groups.
TEST_P(FastPanel, IsNearTheReferenceInManyRows) {
  const std::uint32_t block = traits(GetParam()->dtype).block_elems;
  for (const auto* set : sets_) {
    for (const std::uint32_t n : {511u, 513u, 527u, 528u, 1030u})
      ASSERT_NO_FATAL_FAILURE(check_near(random_product(n, block, 80, true), *set));
    ASSERT_NO_FATAL_FAILURE(check_near(random_product(40, 2560 + block, 150, true), *set));
    ASSERT_NO_FATAL_FAILURE(check_near(random_product(530, 1280, 33, true), *set));
  }
}

TEST_P(FastPanel, HasTheBitsOfTheReferenceInFewRows) {
  for (const auto* set : sets_)
    for (const std::uint32_t n : {1u, 3u, 31u}) {
      const auto p = random_product(n, 512, 33, true);
      EXPECT_EQ(exact(p), fast(p, *set)) << set->name << " n " << n;
    }
}

// Among whatever others, if they are many, and wherever its row of w lies.
TEST_P(FastPanel, GivesARowTheSameBitsAmongOthers) {
  const std::uint32_t k = 512, m = 70, n = 560;
  const auto whole = random_product(n, k, m, true);
  for (const auto* set : sets_) {
    const auto all = fast(whole, *set);
    auto plain = whole;
    plain.packed = false;
    EXPECT_EQ(all, fast(plain, *set));
    for (const auto& [first, rows] : {std::pair(1u, 33u), {40u, 64u}, {500u, 60u}}) {
      auto part = whole;
      part.n = rows;
      part.x = Bytes(whole.x.begin() + first * row_bytes(GetParam()->act, k),
                     whole.x.begin() + (first + rows) * row_bytes(GetParam()->act, k));
      EXPECT_EQ(fast(part, *set), std::vector(all.begin() + first * m, all.begin() + (first + rows) * m))
          << set->name << " rows from " << first << " on";
    }
  }
}

// Where lines of y are whole, and where they are not; values beside y stay as they were.
TEST_P(FastPanel, WritesTheSameWhereverLinesOfYBegin) {
  const std::uint32_t k = 256, n = 131;
  for (const auto* set : sets_)
    for (const std::uint32_t m : {96u, 97u}) {
      auto p = random_product(n, k, m, true);
      if (p.bias.empty() && m == 96) p.bias = random_.normal(m);
      const auto expected = fast(p, *set);
      for (const std::uint32_t pitch : {112u, 113u})
        for (const std::uint32_t from : {0u, 1u}) {
          std::vector<float> memory(std::size_t{n} * pitch + 32, 7.0f);
          float* y = memory.data();
          while (reinterpret_cast<std::uintptr_t>(y) % 64 != 0) ++y;
          y += from;
          fast(p, *set, y, pitch);
          for (std::uint32_t t = 0; t < n; ++t)
            for (std::uint32_t r = 0; r < pitch; ++r)
              ASSERT_EQ(y[t * pitch + r], r < m ? expected[t * m + r] : 7.0f)
                  << set->name << " m " << m << " pitch " << pitch << " from " << from << " token " << t << " row "
                  << r;
        }
    }
}

// What is no number is seen in every value that it is a term of and in no other.
TEST_P(FastPanel, ShowsWhatIsNoNumber) {
  const auto& format = *GetParam();
  const std::uint32_t k = 512, n = 37, m = 20;
  for (const auto* set : sets_) {
    auto p = random_product(n, k, m, true);
    const float nan = NAN;
    std::memcpy(p.x.data() + 7 * row_bytes(format.act, k), &nan, sizeof(nan));
    const auto y = fast(p, *set);
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / m == 7) << set->name << " at " << i;
  }
}

std::vector<const cpu::QuantFormat*> integer_formats() {
  std::vector<const cpu::QuantFormat*> formats;
  for (const auto* format : cpu::quant_formats())
    if (format->act != DType::kF32) formats.push_back(format);
  return formats;
}
INSTANTIATE_TEST_SUITE_P(Formats, FastPanel, ::testing::ValuesIn(integer_formats()),
                         [](const auto& info) { return std::string(to_string(info.param->dtype)); });
INSTANTIATE_TEST_SUITE_P(Formats, Panel, ::testing::ValuesIn(integer_formats()),
                         [](const auto& info) { return std::string(to_string(info.param->dtype)); });

}  // namespace
}  // namespace zinc_rt::kernel_test
