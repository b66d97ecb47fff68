// Every weight format against the oracle (bit-equal), against golden values of another implementation (bit-equal) and
// against float64 (bound).
#include "kernels/cpu/quant/quant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "kernels/common/half.h"
#include "quant_oracle.h"

namespace zinc_rt {
namespace {

std::string format_name(const auto& info) {
  return std::string(to_string(info.param->dtype));
}

// How the blocks of a row and its activations are filled.
enum class Fill { kRandom, kExtreme, kTiny };

class Row {
 public:
  Row(const cpu::QuantFormat& format, int k, Fill fill, unsigned seed) : format_(format), k_(k), rng_(seed) {
    fill_weights(fill);
    fill_activations(fill);
  }

  const std::uint8_t* weights() const { return reinterpret_cast<const std::uint8_t*>(weights_.data()); }
  const void* activations() const {
    if (format_.act == DType::kQ8A256) return x256_.data();
    if (format_.act == DType::kQ8A32) return x32_.data();
    if (format_.act == DType::kQ16A256) return x16_.data();
    return x_.data();
  }
  const std::vector<float>& floats() const { return x_; }  // what the activations stand for

  std::vector<float> expected_values() const {
    std::vector<float> out(static_cast<std::size_t>(k_));
    const auto& row = traits(format_.dtype);
    for (int i = 0; i < k_; ++i) {
      const std::uint8_t* p = weights() + static_cast<std::size_t>(i) / row.block_elems * row.block_bytes;
      float& y = out[static_cast<std::size_t>(i)];
      switch (format_.dtype) {
        case DType::kF32: std::memcpy(&y, p, 4); break;
        case DType::kF16: y = oracle::f16(p); break;
        case DType::kBF16: y = std::bit_cast<float>(static_cast<std::uint32_t>(p[0] << 16 | p[1] << 24)); break;
        default: y = oracle::value(format_.dtype, p, i % static_cast<int>(row.block_elems));
      }
    }
    return out;
  }

  float expected_dot() const {
    if (format_.act == DType::kQ8A256) return oracle::dot_k(format_.dtype, weights(), x256_.data(), k_);
    if (format_.dtype == DType::kNVFP4) return oracle::dot_nvfp4(weights(), x32_.data(), k_);
    if (format_.act == DType::kQ8A32) return oracle::dot_32(format_.dtype, weights(), x32_.data(), k_);
    if (format_.act == DType::kQ16A256) return oracle::dot_fixed(weights(), x16_.data(), k_);
    return oracle::dot_float(expected_values(), x_.data());
  }

  // Sum of the magnitudes of all products, the scale of the rounding error of a dot.
  double magnitude() const {
    double sum = 0;
    const auto& row = traits(format_.dtype);
    const std::vector<float> values = expected_values();
    for (int i = 0; i < k_; ++i) {
      const std::uint8_t* p = weights() + static_cast<std::size_t>(i) / row.block_elems * row.block_bytes;
      double w = std::abs(static_cast<double>(values[static_cast<std::size_t>(i)]));
      if (row.block_elems > 1) {
        const int at = i % static_cast<int>(row.block_elems);
        const oracle::Scales s = oracle::scales(format_.dtype, p, at);
        const oracle::Code c = oracle::code(format_.dtype, p, at);
        const int m = row.block_elems == 32 ? 1 : c.m;
        w = std::abs(static_cast<double>(s.d) * c.sc * c.q) + std::abs(static_cast<double>(s.min) * m);
      }
      sum += w * std::abs(static_cast<double>(x_[static_cast<std::size_t>(i)]));
    }
    return sum;
  }

 private:
  void put_f16(std::uint8_t* p, Fill fill) {
    std::uint16_t bits = f32_to_f16(static_cast<float>(std::normal_distribution<>(0, 0.01)(rng_)));
    constexpr std::uint16_t kTiny[] = {0, 0x8000, 1, 0x8001, 0x03ff, 0x0400};  // zeros, subnormals, the least normal
    if (fill == Fill::kExtreme) bits = rng_() % 2 == 0 ? 0x7bff : 0xfbff;
    if (fill == Fill::kTiny) bits = kTiny[rng_() % std::size(kTiny)];
    std::memcpy(p, &bits, 2);
  }

  void fill_weights(Fill fill) {
    const auto& row = traits(format_.dtype);
    const auto n_bytes = row_bytes(format_.dtype, static_cast<std::uint64_t>(k_));
    weights_.resize(n_bytes / 8 + 1);
    auto* bytes = reinterpret_cast<std::uint8_t*>(weights_.data());
    const std::uint8_t extremes[] = {0x00, 0xff, 0x80, 0x7f, 0x88, 0x0f, 0xf0};
    for (std::uint64_t i = 0; i < n_bytes; ++i)
      bytes[i] = static_cast<std::uint8_t>(fill == Fill::kExtreme ? extremes[rng_() % std::size(extremes)] : rng_());
    for (std::uint8_t* p = bytes; p < bytes + n_bytes; p += row.block_bytes) {
      switch (format_.dtype) {
        case DType::kF32: {
          const auto value = static_cast<float>(std::normal_distribution<>(0, fill == Fill::kTiny ? 1e-38 : 1)(rng_));
          std::memcpy(p, &value, 4);
          break;
        }
        case DType::kF16: put_f16(p, fill); break;
        case DType::kBF16: p[1] = static_cast<std::uint8_t>((p[1] & 0x80) | (fill == Fill::kTiny ? 0 : 0x3e)); break;
        case DType::kMXFP4:
          p[0] = static_cast<std::uint8_t>(fill == Fill::kTiny ? rng_() % 3
                                                               : 100 + rng_() % (fill == Fill::kExtreme ? 120 : 30));
          break;
        case DType::kQ2_K: put_f16(p + 80, fill), put_f16(p + 82, fill); break;
        case DType::kFixed16:
          fit_digits(p);
          p[512] = static_cast<std::uint8_t>(rng_() % 2 * 0x80);
          p[513] = static_cast<std::uint8_t>(fill == Fill::kTiny      ? 0
                                             : fill == Fill::kExtreme ? 0x60
                                                                      : 0x38 + rng_() % 4);
          break;
        case DType::kQ3_K: put_f16(p + 108, fill); break;
        case DType::kQ6_K: put_f16(p + 208, fill); break;
        case DType::kTQ1_0: put_f16(p + 52, fill), fit_ternary(p); break;
        case DType::kTQ2_0: put_f16(p + 64, fill); break;
        case DType::kIQ1_M: {
          std::uint8_t d[2];
          put_f16(d, fill);
          for (int i = 0; i < 4; ++i)
            p[49 + 2 * i] = static_cast<std::uint8_t>((p[49 + 2 * i] & 15) | (d[i / 2] >> (4 * (i % 2)) & 15) << 4);
          break;
        }
        case DType::kNVFP4:
          if (fill == Fill::kTiny)
            for (int i = 0; i < 4; ++i) p[i] = static_cast<std::uint8_t>(rng_() % 3);
          break;
        case DType::kQ4_1:
        case DType::kQ5_1:
        case DType::kQ4_K:
        case DType::kQ5_K: put_f16(p, fill), put_f16(p + 2, fill); break;
        default: put_f16(p, fill);
      }
    }
  }

  // No code of a loader is below -32,640, which is the least with a high digit above -128.
  static void fit_digits(std::uint8_t* high) {
    for (int i = 0; i < 256; ++i)
      if (high[i] == 0x80) high[i] = 0x81;
  }

  // Files have only these bytes: five digits of base 3 as a fraction of 256, rounded up.
  void fit_ternary(std::uint8_t* p) {
    for (int i = 0; i < 52; ++i) p[i] = static_cast<std::uint8_t>((256 * (rng_() % 243) + 242) / 243);
  }

  std::int8_t code(Fill fill) {
    const int extremes[] = {-128, 127, -127};
    return static_cast<std::int8_t>(fill == Fill::kExtreme ? extremes[rng_() % 8 == 0 ? 1 + rng_() % 2 : 0]
                                                           : static_cast<int>(rng_() % 256) - 128);
  }

  void fill_activations(Fill fill) {
    const float d = fill == Fill::kTiny ? 1e-30f : fill == Fill::kExtreme ? 1e4f : 0.02f;
    for (int i = 0; i < k_; ++i) {
      if (format_.act == DType::kF32) {
        x_.push_back(d * static_cast<float>(std::normal_distribution<>(0, 50)(rng_)));
        continue;
      }
      const std::int8_t q = code(fill);
      if (format_.act == DType::kQ8A32) {
        if (i % 32 == 0) x32_.push_back({d * static_cast<float>(1 + i / 32 % 3), 0, {}});
        x32_.back().qs[i % 32] = q;
        x32_.back().sum += q;
        x_.push_back(x32_.back().d * static_cast<float>(q));
      } else if (format_.act == DType::kQ16A256) {
        if (i % 256 == 0) x16_.push_back({d * static_cast<float>(1 + i / 256 % 3), {}, {}});
        x16_.back().high[i % 256] = q == -128 ? std::int8_t{-127} : q;
        x16_.back().low[i % 256] = code(fill);
        x_.push_back(x16_.back().d * static_cast<float>(256 * x16_.back().high[i % 256] + x16_.back().low[i % 256]));
      } else {
        if (i % 256 == 0) x256_.push_back({d * static_cast<float>(1 + i / 256 % 3), {}, {}});
        x256_.back().qs[i % 256] = q;
        x256_.back().sums[i % 256 / 16] = static_cast<std::int16_t>(x256_.back().sums[i % 256 / 16] + q);
        x_.push_back(x256_.back().d * static_cast<float>(q));
      }
    }
  }

  const cpu::QuantFormat& format_;
  int k_;
  std::mt19937 rng_;
  std::vector<std::uint64_t> weights_;
  std::vector<ActBlockQ8A32> x32_;
  std::vector<ActBlockQ8A256> x256_;
  std::vector<ActBlockQ16A256> x16_;
  std::vector<float> x_;
};

// Partial and whole groups of 256, one and several.
std::vector<int> lengths(const cpu::QuantFormat& format) {
  switch (traits(format.dtype).block_elems) {
    case 1: return {1, 2, 15, 16, 17, 31, 33, 255, 256, 257, 511, 512, 576, 1000};
    case 32: return {32, 64, 224, 256, 288, 480, 512, 576, 1024};
    case 64: return {64, 128, 192, 256, 320, 512, 576, 1024};
    default: return {256, 512, 768, 2048};
  }
}

class QuantFormatTest : public testing::TestWithParam<const cpu::QuantFormat*> {
 protected:
  template <class F>
  void for_each_row(F use) {
    const cpu::QuantFormat& format = *GetParam();
    for (const Fill fill : {Fill::kRandom, Fill::kExtreme, Fill::kTiny})
      for (const int k : lengths(format))
        for (unsigned seed = 0; seed < 4; ++seed) {
          SCOPED_TRACE(testing::Message() << "k " << k << " fill " << static_cast<int>(fill) << " seed " << seed);
          use(format, k, Row(format, k, fill, seed));
        }
  }
};

TEST_P(QuantFormatTest, DequantizedRowEqualsTheOracle) {
  for_each_row([](const cpu::QuantFormat& format, int k, const Row& row) {
    std::vector<float> y(static_cast<std::size_t>(k), -1.0f);
    format.dequantize_row(row.weights(), y.data(), k);
    const std::vector<float> expected = row.expected_values();
    for (std::size_t i = 0; i < y.size(); ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(y[i]), std::bit_cast<std::uint32_t>(expected[i]))
          << "element " << i << ": " << y[i] << ", oracle " << expected[i];
  });
}

TEST_P(QuantFormatTest, DotHasTheBitsOfTheWrittenOrder) {
  for_each_row([](const cpu::QuantFormat& format, int k, const Row& row) {
    const float dot = format.dot(row.weights(), row.activations(), k);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(dot), std::bit_cast<std::uint32_t>(row.expected_dot()))
        << dot << ", oracle " << row.expected_dot();
    const float dot_f32 = cpu::dot_f32(format, row.weights(), row.floats().data(), k);
    const float expected = oracle::dot_float(row.expected_values(), row.floats().data());
    ASSERT_EQ(std::bit_cast<std::uint32_t>(dot_f32), std::bit_cast<std::uint32_t>(expected));
  });
}

TEST_P(QuantFormatTest, DotIsNearTheFloat64Dot) {
  for_each_row([](const cpu::QuantFormat& format, int k, const Row& row) {
    const std::vector<float> w = row.expected_values();
    double exact = 0;
    for (std::size_t i = 0; i < w.size(); ++i) exact += static_cast<double>(w[i]) * row.floats()[i];
    // 16 roundings of the largest sums, and one step of the smallest subnormal an operation.
    const double bound = 16 * std::ldexp(1.0, -24) * row.magnitude() + (k + 16) * std::ldexp(1.0, -149);
    EXPECT_NEAR(format.dot(row.weights(), row.activations(), k), exact, bound);
    EXPECT_NEAR(cpu::dot_f32(format, row.weights(), row.floats().data(), k), exact, bound);
  });
}

TEST_P(QuantFormatTest, NoElementsGiveZero) {
  const float nothing = GetParam()->dot(nullptr, nullptr, 0);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(nothing), 0u);
  EXPECT_EQ(cpu::dot_f32(*GetParam(), nullptr, nullptr, 0), 0.0f);
  GetParam()->dequantize_row(nullptr, nullptr, 0);
}

INSTANTIATE_TEST_SUITE_P(AllFormats, QuantFormatTest, testing::ValuesIn(cpu::quant_formats()),
                         [](const auto& info) { return format_name(info); });

TEST(QuantTable, HasOneRowForEachWeightTypeWithTheRightActivations) {
  for (int i = 0; i < static_cast<int>(DType::kCount); ++i) {
    const auto dtype = static_cast<DType>(i);
    const cpu::QuantFormat* format = cpu::quant_format(dtype);
    ASSERT_EQ(format != nullptr, traits(dtype).is_weight) << to_string(dtype);
    if (format == nullptr) continue;
    const std::uint32_t elems = traits(dtype).block_elems;
    const DType of_256 = dtype == DType::kFixed16 ? DType::kQ16A256 : DType::kQ8A256;
    EXPECT_EQ(format->act, elems == 1 ? DType::kF32 : elems < 256 ? DType::kQ8A32 : of_256) << to_string(dtype);
  }
}

// tests_cpp/kernels/data/make_quant_golden.py says what is in the file.
TEST(QuantGolden, ValuesEqualThoseOfAnotherImplementation) {
  std::ifstream in(ZRT_SOURCE_DIR "/tests_cpp/kernels/data/quant_golden.bin", std::ios::binary);
  ASSERT_TRUE(in) << "quant_golden.bin is part of the source";
  const auto u32 = [&in] {
    std::uint32_t value = 0;
    in.read(reinterpret_cast<char*>(&value), sizeof(value));
    return value;
  };
  int n_formats = 0;
  for (std::uint32_t name_bytes = u32(); in; name_bytes = u32()) {
    std::string name(name_bytes, '\0');
    in.read(name.data(), name_bytes);
    const std::uint32_t n_elements = u32();
    const std::uint32_t n_bytes = u32();
    std::vector<std::uint64_t> blocks(n_bytes / 8 + 1);
    std::vector<float> golden(n_elements);
    std::vector<float> y(n_elements);
    in.read(reinterpret_cast<char*>(blocks.data()), n_bytes);
    in.read(reinterpret_cast<char*>(golden.data()), static_cast<std::streamsize>(n_elements * sizeof(float)));
    ASSERT_TRUE(in) << name;
    const auto dtype = parse_dtype(name);
    ASSERT_TRUE(dtype) << name;
    cpu::quant_format(*dtype)->dequantize_row(blocks.data(), y.data(), n_elements);
    for (std::size_t i = 0; i < y.size(); ++i) {
      // The other implementation computes 0 * d without a sign in places: zeros are equal.
      ASSERT_EQ(y[i], golden[i]) << name << " element " << i;
    }
    ++n_formats;
  }
  EXPECT_EQ(n_formats, 15);
}

// tests_cpp/kernels/data/make_format_golden.py says what is in the file.
TEST(QuantGolden, ValuesAndIntegerSumsEqualThoseOfAnotherImplementation) {
  std::ifstream in(ZRT_SOURCE_DIR "/tests_cpp/kernels/data/format_golden.bin", std::ios::binary);
  ASSERT_TRUE(in) << "format_golden.bin is part of the source";
  constexpr int kValues = 512;
  const auto read = [&in]<class T>(std::vector<T>& to) {
    in.read(reinterpret_cast<char*>(to.data()), static_cast<std::streamsize>(to.size() * sizeof(T)));
  };
  const auto u32 = [&] {
    std::vector<std::uint32_t> value(1);
    read(value);
    return value[0];
  };
  std::vector<std::int8_t> q(kValues);
  read(q);
  // With d_x = 1 a dot consists of the sums and the weights' scales alone.
  std::vector<ActBlockQ8A32> x32(kValues / 32, {1, 0, {}});
  std::vector<ActBlockQ8A256> x256(kValues / 256, {1, {}, {}});
  for (std::size_t i = 0; i < kValues; ++i) x32[i / 32].qs[i % 32] = x256[i / 256].qs[i % 256] = q[i];
  int n_formats = 0;
  for (std::uint32_t name_bytes = u32(); in; name_bytes = u32()) {
    std::string name(name_bytes, '\0');
    in.read(name.data(), name_bytes);
    const auto dtype = parse_dtype(name);
    ASSERT_TRUE(dtype) << name;
    const cpu::QuantFormat& format = *cpu::quant_format(*dtype);
    const std::uint32_t n_bytes = u32(), n_sums = u32(), part = kValues / n_sums;
    ASSERT_EQ(n_bytes, row_bytes(*dtype, kValues)) << name;
    for (int row = 0; row < 2; ++row) {
      std::vector<std::byte> blocks(n_bytes);
      std::vector<float> golden(kValues), scales(n_sums), y(kValues);
      std::vector<std::int32_t> sums(n_sums);
      read(blocks), read(golden), read(sums), read(scales);
      ASSERT_TRUE(in) << name;
      format.dequantize_row(blocks.data(), y.data(), kValues);
      for (std::size_t i = 0; i < kValues; ++i)
        ASSERT_EQ(std::bit_cast<std::uint32_t>(y[i]), std::bit_cast<std::uint32_t>(golden[i]))
            << name << " row " << row << " element " << i << ": " << y[i] << ", golden " << golden[i];
      const bool is_k = format.act == DType::kQ8A256;
      float acc = 0, v = 0;
      for (std::uint32_t i = 0; i < n_sums; ++i) {
        const float weighted = static_cast<float>(sums[i]) * scales[i];
        v = is_k ? weighted : v + weighted;
        if ((i + 1) * part % 256 != 0) continue;
        acc = acc + v;
        v = 0;
      }
      const void* x = is_k ? static_cast<const void*>(x256.data()) : x32.data();
      EXPECT_EQ(format.dot(blocks.data(), x, kValues), acc) << name << " row " << row;
    }
    ++n_formats;
  }
  EXPECT_EQ(n_formats, 11);
}

TEST(Half, EveryF16HasItsExactValueAndComesBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const std::uint8_t bytes[] = {static_cast<std::uint8_t>(bits), static_cast<std::uint8_t>(bits >> 8)};
    const float expected = oracle::f16(bytes);
    const float value = f16_to_f32(half);
    if (std::isnan(expected)) {
      // Quiet, sign and payload kept.
      EXPECT_EQ(f32_bits(value), (bits & 0x8000u) << 16 | 0x7fc00000u | (bits & 0x3ffu) << 13);
      EXPECT_EQ(f32_to_f16(value), half | 0x200u);
    } else {
      EXPECT_EQ(f32_bits(value), f32_bits(expected)) << bits;
      EXPECT_EQ(f32_to_f16(value), half);
    }
  }
}

TEST(Half, F32RoundsToTheNearestF16TiesToEven) {
  for (std::uint32_t low = 0; low < 0x7c00; ++low) {
    // Between two neighbours; past the largest finite one, infinity stands where the next number would.
    const double a = f16_to_f32(static_cast<std::uint16_t>(low));
    const double b = low == 0x7bff ? 65536.0 : f16_to_f32(static_cast<std::uint16_t>(low + 1));
    const auto middle = static_cast<float>((a + b) / 2);  // exact: one bit more than an f16
    const std::uint16_t even = static_cast<std::uint16_t>(low % 2 == 0 ? low : low + 1);
    EXPECT_EQ(f32_to_f16(middle), even);
    EXPECT_EQ(f32_to_f16(std::nextafterf(middle, 0.0f)), low);
    EXPECT_EQ(f32_to_f16(std::nextafterf(middle, INFINITY)), low + 1);
    EXPECT_EQ(f32_to_f16(-middle), even | 0x8000);
  }
  EXPECT_EQ(f32_to_f16(INFINITY), 0x7c00);
  EXPECT_EQ(f32_to_f16(-3e38f), 0xfc00);
  EXPECT_EQ(f32_to_f16(f32_from_bits(0x7f800001)), 0x7e00);
}

TEST(Half, Bf16RoundsToTheNearestTiesToEven) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = bf16_to_f32(half);
    EXPECT_EQ(f32_bits(value), bits << 16);
    if (std::isnan(value)) {
      EXPECT_EQ(f32_to_bf16(value), half | 0x40);
    } else {
      EXPECT_EQ(f32_to_bf16(value), half);
    }
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(f32_to_bf16(f32_from_bits(bits << 16 | 0x7fff)), half);
    EXPECT_EQ(f32_to_bf16(f32_from_bits(bits << 16 | 0x8000)), half + (bits & 1));
    EXPECT_EQ(f32_to_bf16(f32_from_bits(bits << 16 | 0x8001)), half + 1);
  }
}

}  // namespace
}  // namespace zinc_rt
