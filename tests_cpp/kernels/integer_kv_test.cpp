// The integer cells of the KV cache, i16: what is written, and attention over it, bit for bit against an oracle that is
// written here from docs/arithmetic.md alone; how close it is to what was not rounded; its bits in every arrangement.
#include <algorithm>
#include <bit>

#include "kernels/common/exact_math.h"
#include "kv_history.h"

namespace zinc_rt::kernel_test::integer_kv {
namespace {

using namespace kv_history;
using kv_history::kPages;

float of_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t(bits) << 16);
}

// A head of one token.
struct Coded {
  std::vector<int> codes;
  std::uint16_t d = 0;
  double value(std::size_t i) const { return double(of_bf16(d)) * codes[i]; }
};
Coded coded(std::span<const float> x) {
  Coded head{std::vector<int>(x.size(), 0)};
  bool finite = true;
  float amax = 0;
  for (const float v : x) finite = finite && std::isfinite(v), amax = std::max(amax, std::abs(v));
  if (!finite) head.d = 0x7fc0;
  if (!finite || amax < 0x1p-100f) return head;
  const float wanted = amax * (1.0f / 32639.0f);
  head.d = std::uint16_t(std::bit_cast<std::uint32_t>(wanted) >> 16);
  if (of_bf16(head.d) < wanted) ++head.d;
  for (std::size_t i = 0; i < x.size(); ++i)
    head.codes[i] = std::clamp(int(std::nearbyint(x[i] * (1.0f / of_bf16(head.d)))), -32639, 32639);
  return head;
}

struct Shape {
  std::uint32_t head_dim = 64, v_head_dim = 64;
  std::uint32_t k_row() const { return kHeads * (head_dim + 1); }
  std::uint32_t v_row() const { return kHeads * (v_head_dim + 1); }
  static std::uint64_t pitch(std::uint32_t row) { return 16 * std::uint64_t{row} * 2 + 64; }
  static Tensor cache(std::uint32_t row, std::byte fill) {
    return {DType::kI16, {kPages, 16, row}, Bytes(kPages * pitch(row), fill), pitch(row)};
  }
};
std::string name(const Shape& s) {
  return "heads of " + std::to_string(s.head_dim) + " and " + std::to_string(s.v_head_dim);
}
const Shape kShapes[] = {{64, 64}, {16, 48}, {80, 80}, {128, 128}, {32, 96}, {512, 512}};

Case kv_write(const Shape& s, const std::vector<float>& k, const std::vector<float>& v,
              const std::vector<std::int32_t>& pos, std::byte fill) {
  return kv_history::kv_write({s.head_dim, s.v_head_dim}, k, v, pos, Shape::cache(s.k_row(), fill),
                              Shape::cache(s.v_row(), fill));
}

void put(std::byte* at, int code) {
  const auto bits = static_cast<std::uint16_t>(code);
  std::memcpy(at, &bits, 2);
}

TEST(IntegerKv, WritesAreTheOraclesBytesAndNoOthers) {
  for (const Shape& s : kShapes) {
    Random random(s.head_dim);
    const std::vector<std::int32_t> pos{0, 15, 16, 47, 3, 31, 1000};
    auto k = random.normal(pos.size() * kHeads * s.head_dim), v = random.normal(pos.size() * kHeads * s.v_head_dim);
    for (std::uint32_t i = 0; i < s.head_dim; ++i) k[i] = 0, k[kHeads * s.head_dim + i] *= 3e33f;
    for (std::uint32_t i = 0; i < s.v_head_dim; ++i) v[i] *= 1e-30f, v[kHeads * s.v_head_dim + i] *= 1e-29f;
    k[2 * kHeads * s.head_dim] = NAN, v[3 * kHeads * s.v_head_dim + 5] = INFINITY;
    const auto got = run(kv_write(s, k, v, pos, std::byte{0x5a}));
    Bytes keys = Shape::cache(s.k_row(), std::byte{0x5a}).bytes,
          values = Shape::cache(s.v_row(), std::byte{0x5a}).bytes;
    const auto pages = shuffled_pages();
    for (std::size_t t = 0; t < pos.size(); ++t)
      for (std::uint32_t head = 0; head < kHeads; ++head) {
        const auto page = static_cast<std::uint64_t>(pages[std::size_t(pos[t] / 16)]);
        const auto token = std::uint64_t(pos[t] % 16);
        std::byte* to = keys.data() + page * Shape::pitch(s.k_row());
        const Coded key = coded(std::span(k).subspan((t * kHeads + head) * s.head_dim, s.head_dim));
        for (std::uint64_t i = 0; i < s.head_dim; ++i)
          put(to + head * 32 * s.head_dim + i / 2 * 64 + token * 4 + i % 2 * 2, key.codes[i]);
        put(to + kHeads * 32 * s.head_dim + head * 32 + token * 2, key.d);
        to = values.data() + page * Shape::pitch(s.v_row());
        const Coded value = coded(std::span(v).subspan((t * kHeads + head) * s.v_head_dim, s.v_head_dim));
        for (std::uint64_t i = 0; i < s.v_head_dim; ++i)
          put(to + head * 32 * s.v_head_dim + (token / 2 * s.v_head_dim + i) * 4 + token % 2 * 2, value.codes[i]);
        put(to + kHeads * 32 * s.v_head_dim + head * 32 + token * 2, value.d);
      }
    EXPECT_TRUE(got[0] == keys) << name(s);
    EXPECT_TRUE(got[1] == values) << name(s);
  }
}

// A history that was written by the op; what was not written is NaN or the largest codes.
class History {
 public:
  History(const Shape& s, std::int32_t n, double k_scale = 0.6) : s_(s), random_(9) {
    for (std::int32_t i = 0; i < n; ++i) {
      const auto k = random_.normal(kHeads * s.head_dim, k_scale), v = random_.normal(kHeads * s.v_head_dim);
      k_.insert(k_.end(), k.begin(), k.end()), v_.insert(v_.end(), v.begin(), v.end());
    }
    write();
    random_ = Random(10);
  }
  History(const Shape& s, std::vector<float> k, std::vector<float> v)
      : s_(s), random_(9), k_(std::move(k)), v_(std::move(v)) {
    write();
  }
  std::vector<float> queries(std::size_t n, std::uint32_t group) {
    return random_.normal(n * group * kHeads * s_.head_dim, 1.2);
  }
  Case attention(Op op, const std::vector<float>& q, const std::vector<std::int32_t>& pos, std::uint32_t group,
                 std::uint32_t window = 0, float softcap = 0) const {
    return attention_over(op, {s_.head_dim, s_.v_head_dim}, q, pos, {group, window, softcap}, keys_, values_);
  }
  // Over the same values in f16 cells.
  Case attention_of_f16(const std::vector<float>& q, const std::vector<std::int32_t>& pos, std::uint32_t group) const {
    const auto cells = [&](const std::vector<float>& rows, std::uint32_t width) {
      const std::uint64_t pitch = 32 * std::uint64_t{width} + 64;
      Tensor cache{DType::kF16, {kPages, 16, width}, Bytes(kPages * pitch), pitch};
      const auto pages = shuffled_pages();
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::uint16_t half = f32_to_f16(rows[i]);
        const std::size_t t = i / width;
        std::memcpy(cache.bytes.data() + std::uint64_t(pages[t / 16]) * pitch + (t % 16 * width + i % width) * 2, &half,
                    2);
      }
      return cache;
    };
    return attention_over(Op::FLASH_ATTN, {s_.head_dim, s_.v_head_dim}, q, pos, {group},
                          cells(k_, kHeads * s_.head_dim), cells(v_, kHeads * s_.v_head_dim));
  }

  // The contract, step by step.
  std::vector<float> expected(const std::vector<float>& q, const std::vector<std::int32_t>& pos, std::uint32_t group,
                              std::uint32_t window, float softcap) const {
    std::vector<float> y;
    for (std::size_t t = 0; t < pos.size(); ++t)
      for (std::uint32_t head = 0; head < group * kHeads; ++head) {
        const auto from = q.begin() + std::ptrdiff_t((t * group * kHeads + head) * s_.head_dim);
        const Digits query = digits(std::vector<float>(from, from + s_.head_dim));
        const int first = window > 0 ? std::max(0, pos[t] - int(window) + 1) : 0;
        const Part total = sum_of_chunks(first, pos[t], [&](int from, int to) {
          return chunk_of(query, head / group, from, to, kScale * query.d, softcap);
        });
        for (const float o : total.o) y.push_back(o * exact::rcp(total.sum));
      }
    return y;
  }
  // In double, over the values as they were.
  std::vector<double> unrounded(const std::vector<float>& q, std::int32_t pos) const {
    std::vector<double> y;
    for (std::uint32_t head = 0; head < kHeads; ++head) {
      std::vector<double> o(s_.v_head_dim);
      double sum = 0;
      for (std::size_t j = 0; j <= std::size_t(pos); ++j) {
        double score = 0;
        for (std::uint32_t i = 0; i < s_.head_dim; ++i)
          score += double(k_[(j * kHeads + head) * s_.head_dim + i]) * q[head * s_.head_dim + i];
        const double p = std::exp(score * double(kScale));
        sum += p;
        for (std::uint32_t i = 0; i < s_.v_head_dim; ++i) o[i] += p * v_[(j * kHeads + head) * s_.v_head_dim + i];
      }
      for (const double x : o) y.push_back(x / sum);
    }
    return y;
  }

 private:
  void write() {
    for (std::size_t i = 0; i < k_.size() / (kHeads * s_.head_dim); ++i) pos_.push_back(std::int32_t(i));
    const auto written = run(kv_write(s_, k_, v_, pos_, std::byte{0xff}));
    keys_ = Shape::cache(s_.k_row(), std::byte{0}), values_ = Shape::cache(s_.v_row(), std::byte{0});
    keys_.bytes = written[0], values_.bytes = written[1];
  }
  Part chunk_of(const Digits& query, std::uint32_t head, int first, int last, float scale, float softcap) const {
    std::vector<float> p, weights;
    Part part{-INFINITY, 0, std::vector<float>(s_.v_head_dim)};
    for (int j = first; j <= last; ++j) {
      const Coded key = coded(std::span(k_).subspan((std::size_t(j) * kHeads + head) * s_.head_dim, s_.head_dim));
      std::int64_t a = 0, b = 0;
      for (std::size_t i = 0; i < s_.head_dim; ++i) a += key.codes[i] * query.high[i], b += key.codes[i] * query.low[i];
      float score = joined(a, b) * of_bf16(key.d) * scale;
      if (softcap > 0) score = softcap * exact::tanh(score * exact::rcp(softcap));
      p.push_back(score);
      part.max = std::max(part.max, score);
    }
    part.sum = softened(p, first, part.max);
    std::vector<Coded> values;
    for (int j = first; j <= last; ++j) {
      values.push_back(coded(std::span(v_).subspan((std::size_t(j) * kHeads + head) * s_.v_head_dim, s_.v_head_dim)));
      weights.push_back(p[std::size_t(j - first)] * of_bf16(values.back().d));
    }
    const Digits weight = digits(weights);
    for (std::size_t i = 0; i < s_.v_head_dim; ++i) {
      std::int64_t a = 0, b = 0;
      for (std::size_t j = 0; j < values.size(); ++j)
        a += values[j].codes[i] * weight.high[j], b += values[j].codes[i] * weight.low[j];
      part.o[i] = joined(a, b) * weight.d;
    }
    return part;
  }
  Shape s_;
  Random random_;
  std::vector<float> k_, v_;
  std::vector<std::int32_t> pos_;
  Tensor keys_, values_;
};

TEST(IntegerKv, AttentionIsTheOraclesBits) {
  for (const Shape& s : kShapes) expect_the_oracles_bits([&] { return History(s, 300); }, name(s));
}

// Weights far apart: most of them are rounded to 0.
TEST(IntegerKv, AttentionOfSharpScoresIsTheOraclesBits) {
  History history({}, 300, 12.0);
  const auto q = history.queries(kEdges.size(), 2);
  EXPECT_EQ(as<float>(run(history.attention(Op::FLASH_ATTN, q, kEdges, 2))[0]), history.expected(q, kEdges, 2, 0, 0));
}

TEST(IntegerKv, IsCloserToWhatWasNotRoundedThanHalvesAre) {
  for (const Shape& s : kShapes)
    for (const double k_scale : {0.1, 0.6, 3.0}) {
      History history(s, 300, k_scale);
      double integers = 0, halves = 0;
      for (int i = 0; i < 3; ++i) {
        const auto q = history.queries(1, 1);
        const auto wanted = history.unrounded(q, 299);
        integers += error_of(as<float>(run(history.attention(Op::FLASH_ATTN, q, {299}, 1))[0]), wanted);
        halves += error_of(as<float>(run(history.attention_of_f16(q, {299}, 1))[0]), wanted);
      }
      EXPECT_LT(integers, halves / 2) << name(s) << ", keys of " << k_scale;
    }
}

TEST(IntegerKv, BitsOfATokenAreItsOwn) {
  for (const Shape& s : kShapes) expect_bits_are_a_tokens_own([&](std::int32_t n) { return History(s, n); }, name(s));
}

TEST(IntegerKv, BitsDoNotDependOnTheSetNorOnTheCutsBetweenThreads) {
  for (const Shape& s : {kShapes[0], kShapes[1], kShapes[3]})
    for (const std::uint32_t window : {0u, 150u}) {
      History history(s, 1101);
      expect_bits_whatever_set_and_threads(history, window, name(s));
    }
}

TEST(IntegerKv, BitsOfPromptsAreTheSetsAlike) {
  for (const Shape& s : {kShapes[0], kShapes[2]})
    expect_bits_of_prompts_whatever_set([&](std::int32_t n) { return History(s, n); }, name(s));
}

TEST(IntegerKv, BitsAreThoseOfTheContract) {
  std::vector<std::uint64_t> hashes;
  for (const Shape& s : kShapes) {
    History history(s, plain_values(200 * kHeads * s.head_dim, 1), plain_values(200 * kHeads * s.v_head_dim, 2));
    const auto q = plain_values(4 * 2 * kHeads * s.head_dim, 3);
    hashes.push_back(hash_of(run(history.attention(Op::FLASH_ATTN, q, {199, 128, 127, 16}, 2))[0]));
  }
  EXPECT_EQ(hashes, (std::vector<std::uint64_t>{13821705665157131176u, 18368841023312343085u, 1411311380228330667u,
                                                14957649786782381894u, 3478043539884586416u, 7567746623809391155u}));
}

TEST(IntegerKv, NanStaysInItsHead) {
  History history({}, 150);
  expect_nan_stays_in_its_head(history);
}

}  // namespace
}  // namespace zinc_rt::kernel_test::integer_kv
