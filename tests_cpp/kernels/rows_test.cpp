// The fast sets' row functions give the reference's bits: lengths around 16 and 256, values of all sizes, and what is
// no number.
#include <bit>

#include <fmt/format.h>

#include "harness.h"
#include "kernels/common/state_run.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/quant.h"

namespace zinc_rt::kernel_test {
namespace {

class Rows : public ::testing::Test {
 protected:
  void SetUp() override {
    if (fast_sets().empty()) GTEST_SKIP() << "this processor runs the reference only";
  }

  // Kinds 0 to 3 are numbers of one size; the others have all sizes, and what is no number.
  std::vector<float> row(std::uint32_t n, int kind) {
    static constexpr float kScale[] = {1.0f, 1e-20f, 1e10f, 30.0f};
    auto x = random_.normal(n);
    for (float& v : x) {
      if (kind < 4) {
        v *= kScale[kind];
      } else if (random_.below(kind == 4 ? 1 : 8) == 0) {
        v = std::bit_cast<float>(static_cast<std::uint32_t>(random_.rng()));
      } else if (kind == 6 && random_.below(40) == 0) {
        v = random_.below(2) != 0 ? INFINITY : -0.0f;
      }
    }
    return x;
  }

  static void expect_same(const std::vector<float>& expected, const std::vector<float>& got, const std::string& what) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (std::isnan(expected[i]) && std::isnan(got[i])) continue;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(expected[i]), std::bit_cast<std::uint32_t>(got[i]))
          << what << " at " << i << ": " << expected[i] << " and " << got[i];
    }
  }

  Random random_{5};
};

TEST_F(Rows, RmsNorm) {
  for (const std::uint32_t group : {1u, 15u, 16u, 17u, 64u, 128u, 255u, 256u, 257u, 300u, 576u, 2048u})
    for (const bool has_weight : {false, true})
      for (int kind = 0; kind < 7; ++kind) {
        const auto x = row(3 * group, kind), w = row(group, 0);
        std::vector<float> expected(x.size());
        cpu::rms_norm_row(x.data(), has_weight ? w.data() : nullptr, expected.data(), 3 * group, group, 1e-6f);
        for (const auto* set : fast_sets()) {
          auto got = x;
          cpu::rms_norm_row(got.data(), has_weight ? w.data() : nullptr, got.data(), 3 * group, group, 1e-6f, set);
          expect_same(expected, got, fmt::format("{} group {} kind {}", set->name, group, kind));
        }
      }
}

TEST_F(Rows, Quantize) {
  for (const DType act : {DType::kQ8A32, DType::kQ8A256, DType::kQ16A256})
    for (const std::uint32_t blocks : {1u, 2u, 15u, 16u, 17u, 48u})
      for (int kind = 0; kind < 7; ++kind)
        for (int round = 0; round < 20; ++round) {
          const std::uint32_t k = blocks * (act == DType::kQ8A32 ? 32 : 256);
          auto x = row(k, kind);
          if (round % 4 == 1) std::ranges::fill(x, 0.0f);
          if (round % 4 == 2) x[random_.below(k)] = std::bit_cast<float>(0x0D800000u + random_.below(3) - 1);  // 2^-100
          if (round % 4 == 3) x[random_.below(k)] = std::bit_cast<float>(0x7B800000u + random_.below(3) - 1);  // 2^120
          Bytes expected(row_bytes(act, k));
          cpu::quantize_row(x.data(), expected.data(), k, act);
          for (const auto* set : fast_sets()) {
            Bytes got(row_bytes(act, k));
            cpu::quantize_row(x.data(), got.data(), k, act, set);
            ASSERT_EQ(expected, got) << set->name << " " << to_string(act) << " " << k << " kind " << kind;
          }
        }
}

TEST_F(Rows, QuantizeRoundsTiesToEven) {
  std::vector<float> x(32);
  for (int i = 0; i < 32; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i) - 15.5f;
  x[0] = 127.0f;
  Bytes expected(row_bytes(DType::kQ8A32, 32));
  cpu::quantize_row(x.data(), expected.data(), 32, DType::kQ8A32);
  for (const auto* set : fast_sets()) {
    Bytes got(expected.size());
    cpu::quantize_row(x.data(), got.data(), 32, DType::kQ8A32, set);
    EXPECT_EQ(expected, got) << set->name;
  }
}

TEST_F(Rows, Rope) {
  for (const auto& [head_dim, n_rot] :
       {std::pair{2u, 2u}, {20u, 20u}, {32u, 32u}, {64u, 64u}, {80u, 32u}, {128u, 128u}, {128u, 70u}, {256u, 64u}})
    for (const bool neox : {false, true})
      for (int kind = 0; kind < 7; ++kind) {
        const auto x = row(3 * head_dim, kind), table = row(n_rot, 0);
        std::vector<float> expected(x.size());
        cpu::rope_row(x.data(), table.data(), expected.data(), 3 * head_dim, head_dim, n_rot, neox);
        for (const auto* set : fast_sets()) {
          auto got = x;
          cpu::rope_row(got.data(), table.data(), got.data(), 3 * head_dim, head_dim, n_rot, neox, set);
          expect_same(expected, got, fmt::format("{} head_dim {} n_rot {} kind {}", set->name, head_dim, n_rot, kind));
        }
      }
}

TEST_F(Rows, Glu) {
  for (const std::uint32_t act : {std::uint32_t{push::kSilu}, std::uint32_t{push::kGeluTanh}})
    for (const std::uint32_t n : {1u, 15u, 16u, 17u, 95u, 1536u})
      for (int kind = 0; kind < 7; ++kind)
        for (int round = 0; round < 10; ++round) {
          const auto gate = row(n, kind), up = row(n, round % 7);
          std::vector<float> expected(n);
          cpu::glu_row(act, gate.data(), up.data(), expected.data(), n);
          for (const auto* set : fast_sets()) {
            auto got = gate;
            cpu::glu_row(act, got.data(), up.data(), got.data(), n, set);
            expect_same(expected, got, fmt::format("{} act {} n {} kind {}", set->name, act, n, kind));
          }
        }
}

// One of a few thousand of all floats.
TEST_F(Rows, ActivationsOverAllFloats) {
  std::vector<float> x(1 << 20), ones(x.size(), 1.0f), expected(x.size()), got(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(i * 4096 + i % 4093));
  for (const std::uint32_t act : {std::uint32_t{push::kSilu}, std::uint32_t{push::kGeluTanh}}) {
    cpu::glu_row(act, x.data(), ones.data(), expected.data(), std::uint32_t(x.size()));
    for (const auto* set : fast_sets()) {
      cpu::glu_row(act, x.data(), ones.data(), got.data(), std::uint32_t(x.size()), set);
      expect_same(expected, got, fmt::format("{} act {}", set->name, act));
    }
  }
}

// The reference and the set, through the op: two tokens of slot 0 of which the second goes on from the first.
class Recurrent : public Rows {
 protected:
  static void check(const char* op, const void* push, std::vector<std::uint32_t> symbols, std::uint32_t workgroups,
                    std::vector<const void*> inputs, const std::vector<float>& state, std::size_t n_y,
                    const std::string& what) {
    const auto kernel =
        *std::ranges::find_if(cpu::cpu_kernels(), [&](const auto* k) { return k->op == std::string(op); });
    const auto run = [&](const cpu::KernelSet* set) {
      std::vector<float> s = state, y(n_y);
      const StateRun all{.n_replayed = 0, .n_certain = kAllCertain, .half = 0, .save_at = 0, .save_to = 0};
      std::vector<void*> buffers;
      for (const void* input : inputs) buffers.push_back(const_cast<void*>(input));
      // Nothing is saved, because no row is a guess.
      buffers.insert(buffers.end(), {s.data(), const_cast<StateRun*>(&all), nullptr, y.data(), s.data(), nullptr});
      std::vector<std::byte> lds(kernel->lds_bytes != nullptr ? kernel->lds_bytes(symbols.data()) : 0);
      for (std::uint32_t wg = 0; wg < workgroups; ++wg)
        kernel->run({.buffers = buffers.data(),
                     .symbols = symbols.data(),
                     .push = push,
                     .n_tokens = 2,
                     .n_outputs = 0,
                     .wg = {wg, 0, 0},
                     .lds = lds.data(),
                     .shared = nullptr,
                     .set = set});
      return std::pair(y, s);
    };
    const auto expected = run(nullptr);
    for (const auto* set : fast_sets()) {
      const auto got = run(set);
      expect_same(expected.first, got.first, set->name + (" " + what));
      expect_same(expected.second, got.second, set->name + (" " + what + ", state"));
    }
  }

  const std::int32_t pos_[2] = {4, 5}, slot_[2] = {0, 0};
};

TEST_F(Recurrent, DeltaNet) {
  for (const std::uint32_t k_dim : {1u, 16u, 100u, 128u})
    for (const std::uint32_t v_dim : {1u, 8u, 15u, 16u, 17u, 32u, 50u, 63u, 128u})
      for (const int kind : {0, 4, 6}) {
        const push::SsmDeltaNet push{1, 2, k_dim, v_dim, 0, 1e-6f};
        const auto x = row(2 * (2 * k_dim + 2 * v_dim), kind == 6 ? 6 : 0), beta = row(4, 0), alpha = row(4, 0),
                   a = row(2, 0), dt = row(2, 0), state = row(2 * k_dim * v_dim, kind);
        check("SSM_DELTA_NET", &push, {2, 1, k_dim, v_dim}, 2,
              {x.data(), beta.data(), alpha.data(), a.data(), dt.data(), pos_, slot_}, state, 4 * v_dim,
              fmt::format("k_dim {} v_dim {} kind {}", k_dim, v_dim, kind));
      }
}

TEST_F(Recurrent, Conv1d) {
  for (const std::uint32_t channels : {1u, 15u, 16u, 17u, 255u, 256u, 257u, 300u})
    for (const std::uint32_t width : {1u, 2u, 3u, 4u, 5u})
      for (int kind = 0; kind < 7; ++kind) {
        const auto x = row(2 * channels, kind), w = row(channels * width, kind == 6 ? 6 : 0), bias = row(channels, 0),
                   state = row((width - 1) * channels, kind);
        for (const bool has_bias : {false, true})
          for (const std::uint32_t act : {push::kConvSilu, push::kConvNone}) {
            const push::SsmConv1d push{width, width - 1, act};
            check("SSM_CONV1D", &push, {2, channels, 1, width - 1}, (channels + 255) / 256,
                  {x.data(), w.data(), has_bias ? bias.data() : nullptr, pos_, slot_}, state, 2 * channels,
                  fmt::format("channels {} width {} kind {} act {}", channels, width, kind, act));
          }
      }
}

class FloatLinear : public Rows {
 protected:
  // Weights of all sizes: bytes of an f16 or bf16 are one for any kind but NaN.
  Bytes matrix(DType type, std::uint32_t m, std::uint32_t k, int kind) {
    if (type == DType::kF32) return to_bytes(row(m * k, kind));
    if (kind < 4) return weights(random_, type, {m, k}).bytes;
    std::vector<std::uint16_t> halves(std::size_t{m} * k);
    for (auto& h : halves) h = static_cast<std::uint16_t>(random_.rng());
    return to_bytes(halves);
  }

  static std::vector<float> product(cpu::LinearArgs args, const cpu::KernelSet* set) {
    std::vector<float> y(std::size_t{args.n} * args.rows), scratch(args.k);
    args.y = y.data();
    args.y_pitch = args.rows;
    args.scratch = scratch.data();
    args.set = set;
    // In two parts, so that a tile does not begin at row 0 alone.
    cpu::linear_rows(args, 0, args.rows / 3);
    cpu::linear_rows(args, args.rows / 3, args.rows);
    return y;
  }

  static void expect_same(const cpu::LinearArgs& args, const std::string& what) {
    const auto expected = product(args, nullptr);
    for (const auto* set : fast_sets()) Rows::expect_same(expected, product(args, set), set->name + (" " + what));
  }

  // Rows of x lie `gap` floats apart; every second height has a bias.
  static cpu::LinearArgs args_of(DType type, std::uint32_t n, std::uint32_t k, std::uint32_t m, std::uint32_t gap,
                                 const Bytes& w, const std::vector<float>& x, const std::vector<float>& bias) {
    return {.w = w.data(),
            .w_dtype = type,
            .packed = false,
            .rows = m,
            .bias = m % 2 != 0 ? bias.data() : nullptr,
            .x = x.data(),
            .x_dtype = DType::kF32,
            .x_pitch = (k + gap) * sizeof(float),
            .k = k,
            .n = n,
            .y = nullptr,
            .y_pitch = m,
            .scratch = nullptr};
  }

  void check(DType type, std::uint32_t n, std::uint32_t k, std::uint32_t m, int kind, std::uint32_t gap) {
    const Bytes w = matrix(type, m, k, kind);
    const auto x = row(n * (k + gap), kind), bias = row(m, 0);
    expect_same(args_of(type, n, k, m, gap, w, x, bias),
                fmt::format("{} n {} k {} m {} kind {}", to_string(type), n, k, m, kind));
  }
};

TEST_F(FloatLinear, HasTheBitsOfTheReference) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16})
    for (const std::uint32_t k : {1u, 15u, 16u, 17u, 255u, 256u, 257u, 1000u})
      for (const std::uint32_t m : {1u, 3u, 4u, 5u, 8u, 17u})
        for (const std::uint32_t n : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 65u})
          for (const int kind : {0, 4, 6}) check(type, n, k, m, kind, m % 3);
}

// Each of the 65,536 halves times one.
TEST_F(FloatLinear, WidensEveryHalf) {
  for (const DType type : {DType::kF16, DType::kBF16}) {
    std::vector<std::uint16_t> halves(1 << 16);
    for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
    const std::vector<float> one(4, 1.0f);
    for (const std::uint32_t n : {1u, 4u}) {
      const cpu::LinearArgs args{halves.data(), type, false, 1 << 16, nullptr, one.data(), DType::kF32,
                                 sizeof(float), 1,    n,     nullptr, 1 << 16, nullptr};
      expect_same(args, fmt::format("{} n {}", to_string(type), n));
    }
  }
}

// The forms of the sets for arithmetic `fast`: of bf16 weights, and of f16 weights with many rows of x.
class FastFloatLinear : public FloatLinear {
 protected:
  void SetUp() override {
    for (const auto* set : fast_sets())
      if (const auto* fast = ring::fast_form_of(*set)) sets_.push_back(fast);
    if (sets_.empty()) GTEST_SKIP() << "no kernels of arithmetic fast run on this processor";
  }

  // As LINEAR has it: rows of x are rounded beforehand, once for all workgroups.
  static std::vector<float> product(cpu::LinearArgs args, const cpu::KernelSet* set) {
    if (set == nullptr || !set->rows->rounds_x(args.w_dtype, args.x_dtype, args.n))
      return FloatLinear::product(args, set);
    const std::uint64_t pitch = cpu::bf16_row_bytes(args.k);
    Bytes rounded(args.n * pitch, std::byte{0xFF});
    for (std::uint32_t t = 0; t < args.n; ++t)
      set->rows->round_x(static_cast<const std::byte*>(args.x) + t * args.x_pitch, args.x_dtype,
                         rounded.data() + t * pitch, args.k);
    args.x = rounded.data();
    args.x_dtype = DType::kBF16;
    args.x_pitch = pitch;
    return FloatLinear::product(args, set);
  }
  // Whether it has other kernels from some number of rows of x on.
  static bool has_tiles(const cpu::KernelSet& set) { return std::string_view(set.name).ends_with("amx_bf16"); }

  // w and x are rounded to 8 bits each, half a bit off on the average and independently of each other: a dot is off by
  // some 2^-9 of the root of its products' summed squares, and 8 times that is seven times the spread.
  void check_near(DType type, std::uint32_t n, std::uint32_t k, std::uint32_t m, std::uint32_t gap) {
    const Bytes w = matrix(type, m, k, 0);
    const auto x = row(n * (k + gap), 0), bias = row(m, 0);
    const auto args = args_of(type, n, k, m, gap, w, x, bias);
    const auto expected = product(args, nullptr);
    std::vector<float> wide(std::size_t{m} * k);
    cpu::quant_format(type)->dequantize_row(w.data(), wide.data(), m * k);
    for (const auto* set : sets_) {
      const auto got = product(args, set);
      EXPECT_NE(expected, got) << "no other arithmetic was used";
      for (std::size_t i = 0; i < got.size(); ++i) {
        double squares = 0;
        for (std::uint32_t at = 0; at < k; ++at) {
          const double v = double{wide[i % m * k + at]} * x[i / m * (k + gap) + at];
          squares += v * v;
        }
        ASSERT_NEAR(expected[i], got[i], 8.0 / 512 * std::sqrt(squares) + 1e-6 * std::abs(expected[i])) << fmt::format(
            "{} {} n {} k {} m {}: row {} of w, row {} of x", set->name, to_string(type), n, k, m, i % m, i / m);
      }
    }
  }

  std::vector<const cpu::KernelSet*> sets_;
};

TEST_F(FastFloatLinear, IsNearTheReference) {
  for (const DType type : {DType::kF16, DType::kBF16})
    for (const std::uint32_t k : {16u, 31u, 32u, 33u, 100u, 256u, 2047u, 2048u, 2080u, 4100u})
      for (const std::uint32_t m : {3u, 8u, 17u, 64u})
        for (const std::uint32_t n : {1u, 2u, 3u, 12u, 13u, 14u, 48u, 49u, 97u})
          if (type == DType::kBF16 || n >= 12) check_near(type, n, k, m, m % 3);
}

TEST_F(FastFloatLinear, HasTheBitsOfTheReferenceForF32AndForFewRowsOfF16) {
  for (const auto& [type, most] : {std::pair(DType::kF32, 65u), {DType::kF16, 11u}})
    for (const std::uint32_t n : {1u, most}) {
      const Bytes w = matrix(type, 17, 300, 0);
      const auto x = row(n * 300, 0), bias = row(17, 0);
      const auto args = args_of(type, n, 300, 17, 0, w, x, bias);
      for (const auto* set : sets_) Rows::expect_same(product(args, nullptr), product(args, set), set->name);
    }
}

// Whatever other rows of x a step has, with tiles those of many rows, and however rows of w are shared out.
TEST_F(FastFloatLinear, GivesARowTheSameBitsAmongOthers) {
  constexpr std::uint32_t kN = 101, kK = 2100, kM = 41;
  for (const DType type : {DType::kF16, DType::kBF16})
    for (const auto* set : sets_) {
      const Bytes w = matrix(type, kM, kK, 0);
      const auto x = row(kN * kK, 0), bias = row(kM, 0);
      const auto all = product(args_of(type, kN, kK, kM, 0, w, x, bias), set);
      for (const std::uint32_t first : {1u, 50u, 88u}) {
        if (has_tiles(*set) && first > 50) continue;
        const std::uint32_t n = has_tiles(*set) ? 33 + first / 4 : type == DType::kBF16 && first < 88 ? 1 : 13;
        auto part = args_of(type, n, kK, kM, 0, w, x, bias);
        part.x = x.data() + first * kK;
        Rows::expect_same({all.begin() + first * kM, all.begin() + (first + n) * kM}, product(part, set), set->name);
      }
      // The bits of a row of w do not depend on where its panel begins.
      for (const std::uint32_t cut : {0u, 7u, 32u}) {
        auto part = args_of(type, kN, kK, kM, 0, w, x, bias);
        part.w = w.data() + cut * kK * sizeof(std::uint16_t);
        part.rows = kM - cut;
        part.bias = bias.data() + cut;
        const auto y = product(part, set);
        for (std::uint32_t t = 0; t < kN; ++t)
          Rows::expect_same({all.begin() + t * kM + cut, all.begin() + (t + 1) * kM},
                            {y.begin() + t * part.rows, y.begin() + (t + 1) * part.rows}, set->name);
      }
    }
}

// Rows of floats, as experts have them, give what rows that were rounded beforehand give; not with tiles, which take
// the latter alone.
TEST_F(FastFloatLinear, TakesRowsThatAreNotRounded) {
  constexpr std::uint32_t kM = 11;
  for (const DType type : {DType::kF16, DType::kBF16})
    for (const std::uint32_t k : {31u, 32u, 100u, 2100u})
      for (const auto* set : sets_) {
        const std::uint32_t n = has_tiles(*set) ? 31 : 50;
        ASSERT_TRUE(set->rows->rounds_x(type, DType::kF32, n));
        const Bytes w = matrix(type, kM, k, 0);
        const auto x = row(n * k, 0), bias = row(kM, 0);
        const auto args = args_of(type, n, k, kM, 0, w, x, bias);
        Rows::expect_same(product(args, set), FloatLinear::product(args, set),
                          fmt::format("{} {} k {}", set->name, to_string(type), k));
      }
}

// What is no number is seen in every value that it is a term of, and in no other: neither in those of other rows nor,
// by what a product leaves behind, in the next product.
TEST_F(FastFloatLinear, ShowsWhatIsNoNumber) {
  constexpr std::uint32_t kN = 36, kK = 100, kBefore = 1023, kM = 10;
  for (const DType type : {DType::kF16, DType::kBF16})
    for (const float odd : {NAN, INFINITY}) {
      Bytes w = matrix(type, kM, kK, 0);
      auto x = row(kN * kK, 0);
      const auto bias = row(kM, 0);
      x[7 * kK + 99] = odd;
      const std::uint16_t half = type == DType::kF16 ? f32_to_f16(odd) : f32_to_bf16(odd);
      std::memcpy(w.data() + (3 * kK + 40) * sizeof(half), &half, sizeof(half));
      const std::vector<float> nans(kN * kBefore, NAN);
      const Bytes nan_w(kM * kBefore * sizeof(half), std::byte{0xFF});
      for (const auto* set : sets_) {
        for (const float v : product(args_of(type, kN, kBefore, kM, 0, nan_w, nans, bias), set))
          EXPECT_TRUE(std::isnan(v));
        const auto y = product(args_of(type, kN, kK, kM, 0, w, x, bias), set);
        for (std::size_t i = 0; i < y.size(); ++i)
          EXPECT_EQ(std::isfinite(y[i]), i / kM != 7 && i % kM != 3) << set->name << " at " << i;
      }
    }
}

TEST(KernelSets, ArithmeticFastHasAFormOfItsOwnOnlyWhereItHasKernels) {
  for (const char* name : {"ref", "avx2", "avx_vnni", "neon"})
    if (const auto set = ring::find_kernel_set(name)) {
      EXPECT_EQ(ring::fast_form_of(**set), nullptr) << name;
    }
  for (const auto* set : fast_sets())
    if (const auto* fast = ring::fast_form_of(*set)) {
      EXPECT_NE(fast, set);
      EXPECT_EQ(fast->reads_panels, set->reads_panels);
      if (!fast->rows->rounds_x(DType::kQ4_0, DType::kQ8A32, 1 << 20)) {
        EXPECT_EQ(fast->linear_rows, set->linear_rows) << "products of quantized weights are exact";
      }
      EXPECT_EQ(fast->attend, set->attend) << "attention is exact";
    }
}

}  // namespace
}  // namespace zinc_rt::kernel_test
