// Float weights as fixed16: each group against the definition in double precision, which matrices it is for, and what a
// Weights gives of them.
#include "model/fixed16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "kernels/common/half.h"
#include "kernels/common/quant_blocks.h"
#include "model/weights.h"

namespace zinc_rt {
namespace {

constexpr std::size_t kGroup = 256;
constexpr DType kTypes[] = {DType::kF16, DType::kBF16};
using Bits = std::vector<std::uint16_t>;  // of weights

float value_of(DType dtype, std::uint16_t bits) {
  return dtype == DType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}
std::uint16_t bits_of(DType dtype, float value) {
  return dtype == DType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
}

struct Group {
  double d = 0;
  std::array<int, kGroup> codes{};
  std::uint64_t n_exact = 0;
};
// What a group becomes: d = 2^-s with the largest s up to 126 that keeps all codes within 32,639.
Group wanted_of(DType dtype, const std::uint16_t* weights) {
  Group group;
  double largest = 0;
  for (std::size_t i = 0; i < kGroup; ++i) {
    const double w = value_of(dtype, weights[i]);
    if (!std::isfinite(w)) return {std::numeric_limits<double>::quiet_NaN(), {}, 0};
    largest = std::max(largest, std::abs(w));
  }
  if (largest == 0) return {0, {}, kGroup};
  int s = 126;
  while (std::ldexp(largest, s) > 32639) --s;
  group.d = std::ldexp(1.0, -s);
  for (std::size_t i = 0; i < kGroup; ++i) {
    const double w = value_of(dtype, weights[i]);
    group.codes[i] = static_cast<int>(std::nearbyint(std::ldexp(w, s)));
    group.n_exact += group.codes[i] * group.d == w;
  }
  return group;
}

std::vector<BlockFixed16> converted(DType dtype, const Bits& weights, std::uint64_t* n_exact = nullptr) {
  std::vector<BlockFixed16> blocks(weights.size() / kGroup);
  const auto n = to_fixed16(dtype, std::as_bytes(std::span(weights)).data(), weights.size(),
                            std::as_writable_bytes(std::span(blocks)).data());
  if (n_exact != nullptr) *n_exact = n;
  return blocks;
}

void expect_converted(DType dtype, const Bits& weights) {
  std::uint64_t n_exact = 0, wanted_exact = 0;
  const auto blocks = converted(dtype, weights, &n_exact);
  for (std::size_t g = 0; g < blocks.size(); ++g) {
    const Group wanted = wanted_of(dtype, weights.data() + g * kGroup);
    wanted_exact += wanted.n_exact;
    const double d = bf16_to_f32(blocks[g].d);
    if (std::isnan(wanted.d))
      EXPECT_TRUE(std::isnan(d));
    else
      EXPECT_EQ(d, wanted.d) << to_string(dtype) << " group " << g;
    for (std::size_t i = 0; i < kGroup; ++i) {
      ASSERT_EQ(blocks[g].high[i] * 256 + blocks[g].low[i], wanted.codes[i])
          << to_string(dtype) << " group " << g << ", weight " << i << " = "
          << value_of(dtype, weights[g * kGroup + i]);
      ASSERT_LE(std::abs(wanted.codes[i]), 32639);
    }
  }
  EXPECT_EQ(n_exact, wanted_exact) << to_string(dtype);
}

Bits filled(DType dtype, std::size_t n, const std::function<float(std::size_t)>& value) {
  Bits weights(n);
  for (std::size_t i = 0; i < n; ++i) weights[i] = bits_of(dtype, value(i));
  return weights;
}

TEST(Fixed16, RandomBits) {
  std::mt19937 rng(1);
  for (const DType dtype : kTypes) {
    // Groups of all magnitudes; of a few; of none that is not finite.
    const std::uint16_t infinity = dtype == DType::kF16 ? 0x7c00 : 0x7f80;
    for (const unsigned mask : {0xffffu, 0x8fffu, 0x83ffu}) {
      Bits weights(64 * kGroup);
      for (auto& w : weights) {
        w = static_cast<std::uint16_t>(rng() & mask);
        if ((w & infinity) == infinity) w = static_cast<std::uint16_t>(w & 0x83ff);
      }
      expect_converted(dtype, weights);
    }
  }
}

TEST(Fixed16, WeightsAsModelsHaveThem) {
  std::mt19937 rng(2);
  for (const DType dtype : kTypes)
    for (const float sigma : {1e-6f, 0.02f, 1.0f, 3000.0f}) {
      std::normal_distribution<float> normal(0.0f, sigma);
      expect_converted(dtype, filled(dtype, 32 * kGroup, [&](std::size_t) { return normal(rng); }));
    }
}

// Every number as the largest of a group: where s steps, and the ends of it.
TEST(Fixed16, EveryLargestNumber) {
  for (const DType dtype : kTypes) {
    Bits weights;
    for (std::uint32_t bits = 0; bits < 0x8000u; bits += dtype == DType::kF16 ? 3 : 1) {
      if (!std::isfinite(value_of(dtype, static_cast<std::uint16_t>(bits)))) break;
      weights.push_back(static_cast<std::uint16_t>(bits | (bits % 2 << 15)));
      for (std::size_t i = 1; i < kGroup; ++i) weights.push_back(static_cast<std::uint16_t>(bits * i / kGroup));
    }
    expect_converted(dtype, weights);
  }
}

TEST(Fixed16, TheEnds) {
  const auto d_of = [](DType dtype, float largest) {
    return bf16_to_f32(
        converted(dtype, filled(dtype, kGroup, [&](std::size_t i) { return i == 7 ? largest : 0; }))[0].d);
  };
  EXPECT_EQ(d_of(DType::kBF16, 0x1.fep127f), 0x1p114f) << "the largest scale";
  EXPECT_EQ(d_of(DType::kBF16, 0x1p-126f), 0x1p-126f) << "the smallest: 1 / d is a normal number, too";
  EXPECT_EQ(d_of(DType::kBF16, 0x1p-133f), 0x1p-126f) << "subnormal";
  EXPECT_EQ(d_of(DType::kF16, 65504.0f), 4.0f) << "1.999 * 2^15 is beyond 32,639 by 2";
  EXPECT_EQ(d_of(DType::kF16, 0x1p-24f), 0x1p-38f) << "subnormal in F16 alone";
  EXPECT_EQ(d_of(DType::kF16, 32624.0f), 1.0f);
  EXPECT_EQ(d_of(DType::kF16, 32640.0f), 2.0f) << "one more than the largest code";
  EXPECT_EQ(d_of(DType::kF16, 0.0f), 0.0f);
  // A weight of which the scaled value is no float is a 0, and counts as lost.
  std::uint64_t n_exact = 0;
  converted(DType::kBF16, filled(DType::kBF16, kGroup, [](std::size_t i) { return i == 0 ? 0x1p127f : 0x1p-100f; }),
            &n_exact);
  EXPECT_EQ(n_exact, 1u);
}

TEST(Fixed16, TiesGoToEven) {
  for (const DType dtype : kTypes) {
    const float values[] = {16384, 0.5f, 1.5f, 2.5f, 3.5f, -0.5f, -1.5f, -2.5f, -3.5f, 2.25f, 2.75f, 100.5f, -101.5f};
    const int codes[] = {16384, 0, 2, 2, 4, 0, -2, -2, -4, 2, 3, 100, -102};
    const auto block = converted(
        dtype, filled(dtype, kGroup, [&](std::size_t i) { return i < std::size(values) ? values[i] : 0; }))[0];
    ASSERT_EQ(bf16_to_f32(block.d), 1.0f);
    for (std::size_t i = 0; i < std::size(codes); ++i)
      EXPECT_EQ(block.high[i] * 256 + block.low[i], codes[i]) << to_string(dtype) << " " << values[i];
  }
}

TEST(Fixed16, WhatIsNotFiniteIsSeen) {
  for (const DType dtype : kTypes)
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
      const auto weights = filled(dtype, 3 * kGroup, [&](std::size_t i) { return i == kGroup + 200 ? bad : 1.0f; });
      expect_converted(dtype, weights);
      std::uint64_t n_exact = 0;
      const auto blocks = converted(dtype, weights, &n_exact);
      EXPECT_EQ(blocks[1].d, 0x7fc0);
      EXPECT_EQ(n_exact, 2 * kGroup);
    }
}

// A file of one tensor in memory.
Weights weights_of(DType dtype, const std::vector<std::uint64_t>& dims, const std::vector<std::byte>& data) {
  auto bytes = std::make_shared<const std::vector<std::byte>>(data);
  gguf::TensorInfo info;
  info.name = "w";
  info.dtype = dtype;
  info.n_dims = static_cast<std::uint32_t>(dims.size());
  std::ranges::copy(dims, info.dims.begin());
  return Weights(Weights::Source{.path = "memory",
                                 .file_bytes = data.size(),
                                 .metadata = {},
                                 .infos = {info},
                                 .data = {std::span(*bytes)},
                                 .owner = bytes,
                                 .is_mapped = false,
                                 .is_whole = {}});
}
std::vector<std::byte> bytes_of(const Bits& weights) {
  const auto bytes = std::as_bytes(std::span(weights));
  return {bytes.begin(), bytes.end()};
}
bool fits(DType dtype, const std::vector<std::uint64_t>& dims, const std::function<float(std::size_t)>& value) {
  std::uint64_t n = 1;
  for (const auto dim : dims) n *= dim;
  return fits_fixed16(weights_of(dtype, dims, bytes_of(filled(dtype, n, value))).all()[0]);
}

TEST(Fixed16, IsForMatricesOfWholeGroups) {
  const auto one = [](std::size_t) { return 1.0f; };
  for (const DType dtype : kTypes) {
    EXPECT_TRUE(fits(dtype, {256, 1}, one));
    EXPECT_TRUE(fits(dtype, {512, 3}, one));
    EXPECT_TRUE(fits(dtype, {256, 5, 4}, one)) << "experts";
    EXPECT_FALSE(fits(dtype, {256}, one)) << "a norm";
    EXPECT_FALSE(fits(dtype, {320, 3}, one));
    EXPECT_FALSE(fits(dtype, {128, 4}, one));
    EXPECT_FALSE(fits(dtype, {256, 0}, one));
  }
  EXPECT_FALSE(fits_fixed16(weights_of(DType::kF32, {256, 2}, std::vector<std::byte>(2048)).all()[0]));
  EXPECT_FALSE(fits_fixed16(weights_of(DType::kQ8_0, {256, 2}, std::vector<std::byte>(544)).all()[0]));
}

TEST(Fixed16, IsForMatricesOfWhichNineTenthsKeepTheirValue) {
  // In each group 16384, so that d is 1, and n weights of 0.25, which are lost.
  const auto with_lost = [](std::size_t n) {
    return [n](std::size_t i) { return i % kGroup == 0 ? 16384.0f : i % kGroup <= n ? 0.25f : 3.0f; };
  };
  for (const DType dtype : kTypes) {
    EXPECT_TRUE(fits(dtype, {512, 40}, with_lost(25)));   // 231 / 256 = 0.902
    EXPECT_FALSE(fits(dtype, {512, 40}, with_lost(26)));  // 230 / 256 = 0.898
    // Rows are sampled, the first among them.
    const auto in_row = [&](std::size_t bad) {
      return [&, bad](std::size_t i) { return i / 256 == bad ? with_lost(200)(i) : 3.0f; };
    };
    EXPECT_TRUE(fits(dtype, {256, 320}, in_row(0)));
    EXPECT_TRUE(fits(dtype, {256, 320}, in_row(155)));
    EXPECT_FALSE(fits(dtype, {256, 4}, in_row(3))) << "all rows of a small one are";
  }
}

TEST(Fixed16, WeightsGiveRowsInTheFormThatIsComputedWith) {
  std::mt19937 rng(3);
  std::normal_distribution<float> normal(0.0f, 0.02f);
  constexpr std::uint64_t k = 512, n_rows = 4099;  // 4 MiB, so that four threads have work
  for (const DType dtype : kTypes) {
    const auto bits = filled(dtype, k * n_rows, [&](std::size_t) { return bf16_to_f32(f32_to_bf16(normal(rng))); });
    auto weights = weights_of(dtype, {k, n_rows}, bytes_of(bits));
    const Tensor& tensor = weights.all()[0];
    const auto copied = [&](std::uint64_t first, std::uint64_t n, unsigned n_threads) {
      std::vector<std::byte> to(n * row_bytes(tensor.dtype, k));
      weights.copy_rows(tensor, first, n, to.data(), n_threads);
      return to;
    };
    EXPECT_EQ(copied(0, n_rows, 4), bytes_of(bits)) << "before";
    weights.use_fixed16();
    EXPECT_EQ(tensor.dtype, DType::kFixed16);
    EXPECT_EQ(tensor.stored, dtype);
    EXPECT_EQ(tensor.data.size(), k * n_rows * 2);
    EXPECT_EQ(tensor.computed_bytes(), n_rows * 2 * 514);
    EXPECT_EQ(weights.infos()[0].dtype, dtype) << "what the file says";
    EXPECT_EQ(weights.bytes_by_dtype(), (std::vector{std::pair{dtype, k * n_rows * 2}}));
    EXPECT_EQ(weights.computed_bytes_by_dtype(), (std::vector{std::pair{DType::kFixed16, n_rows * 2 * 514}}));
    const auto blocks = converted(dtype, bits);
    const auto wanted = std::as_bytes(std::span(blocks));
    const auto all = copied(0, n_rows, 1);
    ASSERT_EQ(all.size(), wanted.size());
    EXPECT_EQ(std::memcmp(all.data(), wanted.data(), all.size()), 0);
    for (const unsigned n_threads : {0u, 2u, 3u, 4u, 16u})
      EXPECT_TRUE(copied(0, n_rows, n_threads) == all) << n_threads;
    for (const auto& [first, n] : {std::pair<std::uint64_t, std::uint64_t>{0, 1}, {7, 3}, {n_rows - 1, 1}, {5, 0}}) {
      const auto part = copied(first, n, 4);
      EXPECT_TRUE(std::ranges::equal(part, std::span(all).subspan(first * 2 * 514, n * 2 * 514))) << first;
    }
  }
}

}  // namespace
}  // namespace zinc_rt
