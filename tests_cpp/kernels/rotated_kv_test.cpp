// The rotated cells of the KV cache, r8 and r4: what is written bit for bit against an oracle that is written here from
// docs/arithmetic.md alone, attention over them against float64, and its bits in every arrangement.
#include <algorithm>
#include <bit>

#include "kernels/common/exact_math.h"
#include "kernels/common/kv_rotate.h"
#include "kv_history.h"

namespace zinc_rt::kernel_test::rotated_kv {
namespace {

using namespace kv_history;
using kv_history::kPages;
constexpr std::uint32_t kNegative[8] = {0x79e58218, 0x1ff63c01, 0xa1560927, 0x9cecdeee,
                                        0x6769fc6f, 0x89419f93, 0xeb86b180, 0xafd60b62};

// H(s x), a stage at a time into new memory.
std::vector<float> rotated(std::span<const float> x) {
  std::vector<float> y(x.begin(), x.end());
  for (std::size_t i = 0; i < y.size(); ++i)
    if (kNegative[i / 32] >> i % 32 & 1) y[i] = -y[i];
  for (std::size_t h = 1; h < y.size(); h *= 2) {
    std::vector<float> next(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) next[i] = i & h ? y[i ^ h] - y[i] : y[i] + y[i ^ h];
    y = next;
  }
  return y;
}

float dot64(const std::vector<float>& a, const std::vector<float>& b) {
  float lane[16] = {};
  for (std::size_t i = 0; i < 64; ++i) lane[i % 16] = std::fma(a[i], b[i], lane[i % 16]);
  for (int step : {8, 4, 2, 1})
    for (int l = 0; l < step; ++l) lane[l] += lane[l + step];
  return lane[0];
}

// The compiler's own type of 16 bits: GCC 12 has _Float16 for x86 alone.
#ifdef __aarch64__
using Half = __fp16;
#else
using Half = _Float16;
#endif
std::uint16_t half_bits(float x) {
  return std::bit_cast<std::uint16_t>(static_cast<Half>(x));
}
float of_half(std::uint16_t bits) {
  return static_cast<float>(std::bit_cast<Half>(bits));
}

// 64 values as codes and a scale.
struct Block {
  std::vector<int> codes;
  std::uint16_t d = 0;
};

const std::vector<int> kLevels{-126, -95, -74, -58, -43, -30, -18, -6, 6, 18, 30, 43, 58, 74, 95, 126};

Block r8_block(const std::vector<float>& x) {
  Block block{std::vector<int>(64, 0)};
  float amax = 0;
  bool finite = true;
  for (const float v : x) amax = std::max(amax, std::abs(v)), finite = finite && std::isfinite(v);
  block.d = half_bits(amax * (1.0f / 127.0f));
  if (!finite || block.d == 0x7c00) block.d = 0x7e00;
  if (block.d == 0 || block.d == 0x7e00) return block;
  for (std::size_t i = 0; i < 64; ++i)
    block.codes[i] = std::clamp(static_cast<int>(std::nearbyint(x[i] * (1.0f / of_half(block.d)))), -127, 127);
  return block;
}

Block r4_block(const std::vector<float>& x) {
  Block best{std::vector<int>(64, 0)};
  float amax = 0, most_gain = -1;
  bool finite = true;
  for (const float v : x) amax = std::max(amax, std::abs(v)), finite = finite && std::isfinite(v);
  if (!finite || amax > 0x1p100f) best.d = 0x7e00;
  if (best.d != 0 || amax < 0x1p-100f) return best;
  std::vector<float> z(64);
  for (std::size_t i = 0; i < 64; ++i) z[i] = x[i] * (126.0f / amax);
  for (int step = 0; step < 4; ++step) {
    const float factor = 1.0f + float(step) / 16;
    std::vector<int> codes(64, 0);
    std::vector<float> levels(64);
    float squares = 0;
    for (std::size_t i = 0; i < 64; ++i) {
      while (codes[i] < 15 && float(kLevels[codes[i]] + kLevels[codes[i] + 1]) / 2 < z[i] * factor) ++codes[i];
      levels[i] = float(kLevels[codes[i]]);
      squares += levels[i] * levels[i];
    }
    const float t = dot64(z, levels), gain = t * t / squares;
    if (!(gain > most_gain)) continue;
    most_gain = gain;
    best.codes = codes;
    best.d = half_bits(t / squares * (amax * (64.0f / 126.0f)));
    if (best.d == 0x7c00) best.d = 0x7e00;
  }
  return best;
}

Block block_of(DType type, std::span<const float> rotated_head, std::uint32_t b) {
  const std::vector<float> x(rotated_head.begin() + b * 64, rotated_head.begin() + (b + 1) * 64);
  return type == DType::kR8 ? r8_block(x) : r4_block(x);
}

int level_of(DType type, int code) {
  return type == DType::kR8 ? code : kLevels[std::size_t(code)];
}
float scale_of(DType type, const Block& block) {
  return of_half(block.d) / (type == DType::kR8 ? 1.0f : 64.0f);
}
// y = s H(o) / R, a stage at a time into new memory.
template <class T>
std::vector<T> turned_back(std::vector<T> o) {
  for (std::size_t h = 1; h < o.size(); h *= 2) {
    auto next = o;
    for (std::size_t i = 0; i < o.size(); ++i) next[i] = i & h ? o[i ^ h] - o[i] : o[i] + o[i ^ h];
    o = next;
  }
  for (std::size_t i = 0; i < o.size(); ++i) o[i] *= T(kNegative[i / 32] >> i % 32 & 1 ? -1 : 1) / T(o.size());
  return o;
}

// Puts one token into a page part, byte by byte.
void put_key(DType type, std::uint32_t head_dim, std::uint32_t head, std::uint32_t b, std::uint32_t token,
             const Block& block, std::byte* part) {
  const std::uint32_t bytes = type == DType::kR8 ? head_dim : head_dim / 2, in_block = bytes / (head_dim / 64);
  for (std::uint32_t i = 0; i < in_block; ++i) {
    const int low = block.codes[i], high = type == DType::kR8 ? 0 : block.codes[i + 32];
    const std::uint32_t word = b * in_block / 4 + i / 4;
    part[head * 16 * bytes + word * 64 + token * 4 + i % 4] = static_cast<std::byte>(low + 16 * high);
  }
  std::memcpy(part + kHeads * 16 * bytes + ((head * (head_dim / 64) + b) * 16 + token) * 2, &block.d, 2);
}
void put_value(std::uint32_t head_dim, std::uint32_t head, std::uint32_t b, std::uint32_t token, const Block& block,
               std::byte* part) {
  for (std::uint32_t i = 0; i < 32; ++i)
    part[(head * 16 + token) * (head_dim / 2) + b * 32 + i] =
        static_cast<std::byte>(block.codes[i] + 16 * block.codes[i + 32]);
  std::memcpy(part + kHeads * 16 * head_dim / 2 + ((head * 16 + token) * (head_dim / 64) + b) * 2, &block.d, 2);
}

struct Shape {
  DType k = DType::kR8;
  std::uint32_t head_dim = 64;
  std::uint32_t width() const { return kHeads * head_dim; }
  std::uint64_t pitch(DType type) const { return 16 * row_bytes(type, width()) + 64; }
  Tensor cache(DType type, std::byte fill) const {
    return {type, {kPages, 16, width()}, Bytes(kPages * pitch(type), fill), pitch(type)};
  }
};
std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const DType k : {DType::kR8, DType::kR4})
    for (const std::uint32_t head_dim : {64u, 128u, 256u}) all.push_back({k, head_dim});
  return all;
}
std::string name(const Shape& s) {
  return std::string(to_string(s.k)) + " keys of " + std::to_string(s.head_dim);
}

Case kv_write(const Shape& s, const std::vector<float>& k, const std::vector<float>& v,
              const std::vector<std::int32_t>& pos, std::byte fill) {
  return kv_history::kv_write({s.head_dim, s.head_dim}, k, v, pos, s.cache(s.k, fill), s.cache(DType::kR4, fill));
}

std::span<const float> head_of(const std::vector<float>& rows, const Shape& s, std::size_t token, std::uint32_t head) {
  return std::span(rows).subspan(token * s.width() + head * s.head_dim, s.head_dim);
}

TEST(RotatedKv, TheTableIsThatOfANormalDistribution) {
  // Lloyd-Max: borders are middles of neighbours, levels the means between borders.
  const auto density = [](double x) { return std::exp(-x * x / 2) / std::sqrt(2 * M_PI); };
  const auto below = [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; };
  std::vector<double> level(16);
  for (int i = 0; i < 16; ++i) level[i] = -2.5 + i / 3.0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<double> border{-40};
    for (int i = 0; i < 15; ++i) border.push_back((level[i] + level[i + 1]) / 2);
    border.push_back(40);
    for (int i = 0; i < 16; ++i)
      level[i] = (density(border[i]) - density(border[i + 1])) / (below(border[i + 1]) - below(border[i]));
  }
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(kv::kTable[i], kLevels[i]);
    EXPECT_NEAR(kv::kTable[i], 46 * level[i], 0.6) << i;
  }
  for (int i = 0; i < 15; ++i) EXPECT_EQ(kv::kMiddles[i], (kv::kTable[i] + kv::kTable[i + 1]) / 2.0f);
}

TEST(RotatedKv, RotatingBackGivesTheValues) {
  Random random(1);
  for (const std::uint32_t n : {64u, 128u, 256u}) {
    const auto x = random.normal(n);
    std::vector<float> y(n);
    kv::rotate(x.data(), y.data(), n);
    EXPECT_EQ(y, rotated(x));
    kv::rotate_back(y.data(), n);
    for (std::uint32_t i = 0; i < n; ++i) EXPECT_NEAR(y[i], x[i], 1e-5);
  }
}

TEST(RotatedKv, WritesAreTheOraclesBytesAndNoOthers) {
  for (const Shape& s : shapes()) {
    Random random(s.head_dim);
    const std::vector<std::int32_t> pos{0, 15, 16, 47, 3, 31, 1000};
    auto k = random.normal(pos.size() * s.width()), v = random.normal(pos.size() * s.width());
    for (std::uint32_t i = 0; i < s.width(); ++i) k[i] = 0, v[s.width() + i] *= 1e-4f, k[s.width() + i] *= 3e3f;
    k[2 * s.width()] = NAN, k[3 * s.width() + 5] = INFINITY, v[3 * s.width() + 5] = 1e30f,
          v[2 * s.width() + 9] = 1e-30f;
    const auto got = run(kv_write(s, k, v, pos, std::byte{0x5a}));
    Bytes keys = s.cache(s.k, std::byte{0x5a}).bytes, values = s.cache(DType::kR4, std::byte{0x5a}).bytes;
    const auto pages = shuffled_pages();
    for (std::size_t t = 0; t < pos.size(); ++t)
      for (std::uint32_t head = 0; head < kHeads; ++head) {
        const auto key = rotated(head_of(k, s, t, head)), value = rotated(head_of(v, s, t, head));
        const auto page = static_cast<std::uint64_t>(pages[std::size_t(pos[t] / 16)]);
        for (std::uint32_t b = 0; b < s.head_dim / 64; ++b) {
          const auto token = std::uint32_t(pos[t] % 16);
          put_key(s.k, s.head_dim, head, b, token, block_of(s.k, key, b), keys.data() + page * s.pitch(s.k));
          put_value(s.head_dim, head, b, token, block_of(DType::kR4, value, b),
                    values.data() + page * s.pitch(DType::kR4));
        }
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
      const auto k = random_.normal(s.width(), k_scale), v = random_.normal(s.width());
      k_.insert(k_.end(), k.begin(), k.end()), v_.insert(v_.end(), v.begin(), v.end());
    }
    write();
    random_ = Random(10);
  }
  History(const Shape& s, std::vector<float> k, std::vector<float> v)
      : s_(s), random_(9), k_(std::move(k)), v_(std::move(v)) {
    write();
  }
  std::vector<float> queries(std::size_t n, std::uint32_t group) { return random_.normal(n * group * s_.width(), 1.2); }
  Case attention(Op op, const std::vector<float>& q, const std::vector<std::int32_t>& pos, std::uint32_t group,
                 std::uint32_t window = 0, float softcap = 0) const {
    return attention_over(op, {s_.head_dim, s_.head_dim}, q, pos, {group, window, softcap}, keys_, values_);
  }
  // The contract, step by step.
  std::vector<float> expected(const std::vector<float>& q, const std::vector<std::int32_t>& pos, std::uint32_t group,
                              std::uint32_t window, float softcap) const {
    const std::uint32_t R = s_.head_dim;
    std::vector<float> y;
    for (std::size_t t = 0; t < pos.size(); ++t)
      for (std::uint32_t head = 0; head < group * kHeads; ++head) {
        const auto x = rotated(std::span(q).subspan((t * group * kHeads + head) * R, R));
        const int first = window > 0 ? std::max(0, pos[t] - int(window) + 1) : 0;
        Part total = sum_of_chunks(first, pos[t],
                                   [&](int from, int to) { return chunk_of(x, head / group, from, to, softcap); });
        for (float& o : total.o) o *= exact::rcp(total.sum);
        const auto turned = turned_back(total.o);
        y.insert(y.end(), turned.begin(), turned.end());
      }
    return y;
  }
  // In double, over what the cells and the int8 query stand for.
  std::vector<double> in_doubles(const std::vector<float>& q, const std::vector<std::int32_t>& pos, std::uint32_t group,
                                 std::uint32_t window, float softcap) const {
    const std::uint32_t R = s_.head_dim;
    std::vector<double> y;
    for (std::size_t t = 0; t < pos.size(); ++t)
      for (std::uint32_t head = 0; head < group * kHeads; ++head) {
        const auto x = rotated(std::span(q).subspan((t * group * kHeads + head) * R, R));
        std::vector<double> wide(R);
        for (std::uint32_t b = 0; b < R / 64; ++b) {
          float amax = 0;
          for (std::uint32_t i = 0; i < 64; ++i) amax = std::max(amax, std::abs(x[b * 64 + i]));
          for (std::uint32_t i = 0; i < 64; ++i)
            wide[b * 64 + i] = std::nearbyint(x[b * 64 + i] * (127.0f / amax)) * double(amax / 127.0f);
        }
        const int first = window > 0 ? std::max(0, pos[t] - int(window) + 1) : 0;
        std::vector<double> o(R), scores;
        double max = -1e300, sum = 0;
        for (int j = first; j <= pos[t]; ++j) {
          const auto key = stored(k_, s_.k, j, head / group);
          double score = 0;
          for (std::uint32_t i = 0; i < R; ++i) score += key[i] * wide[i];
          score *= double(kScale) / R;
          if (softcap > 0) score = softcap * std::tanh(score / softcap);
          scores.push_back(score), max = std::max(max, score);
        }
        for (int j = first; j <= pos[t]; ++j) {
          const double p = std::exp(scores[std::size_t(j - first)] - max);
          const auto value = stored(v_, DType::kR4, j, head / group);
          sum += p;
          for (std::uint32_t i = 0; i < R; ++i) o[i] += p * value[i];
        }
        for (const double x : turned_back(o)) y.push_back(x / sum);
      }
    return y;
  }
  // Attention over the values as they were, in double.
  std::vector<double> unrounded(const std::vector<float>& q, std::int32_t pos) const {
    const std::uint32_t R = s_.head_dim;
    std::vector<double> y;
    for (std::uint32_t head = 0; head < kHeads; ++head) {
      std::vector<double> o(R);
      double sum = 0;
      for (int j = 0; j <= pos; ++j) {
        const auto key = head_of(k_, s_, std::size_t(j), head), value = head_of(v_, s_, std::size_t(j), head);
        double score = 0;
        for (std::uint32_t i = 0; i < R; ++i) score += double(key[i]) * q[head * R + i];
        const double p = std::exp(score * double(kScale));
        sum += p;
        for (std::uint32_t i = 0; i < R; ++i) o[i] += p * value[i];
      }
      for (const double x : o) y.push_back(x / sum);
    }
    return y;
  }

 private:
  void write() {
    for (std::size_t i = 0; i < k_.size() / s_.width(); ++i) pos_.push_back(std::int32_t(i));
    const auto written = run(kv_write(s_, k_, v_, pos_, std::byte{0xff}));
    keys_ = s_.cache(s_.k, std::byte{0}), values_ = s_.cache(DType::kR4, std::byte{0});
    keys_.bytes = written[0], values_.bytes = written[1];
  }
  // A chunk of a head whose query, as H(s q), is x.
  Part chunk_of(const std::vector<float>& x, std::uint32_t head, int first, int last, float softcap) const {
    const std::uint32_t R = s_.head_dim;
    Part part{-INFINITY, 0, std::vector<float>(R)};
    std::vector<float> p;
    for (int j = first; j <= last; ++j) {
      const auto key = rotated(head_of(k_, s_, std::size_t(j), head));
      float score = 0;
      for (std::uint32_t b = 0; b < R / 64; ++b) {
        const float amax = largest(std::span(x).subspan(b * 64, 64));
        const Block block = block_of(s_.k, key, b);
        std::int64_t sum = 0;
        for (std::uint32_t i = 0; i < 64; ++i)
          sum += std::int64_t(std::nearbyint(x[b * 64 + i] * (127.0f / amax))) * level_of(s_.k, block.codes[i]);
        score = std::fma(float(sum) * scale_of(s_.k, block), amax / 127.0f, score);
      }
      score *= kScale * (1.0f / float(R));
      if (softcap > 0) score = softcap * exact::tanh(score * exact::rcp(softcap));
      p.push_back(score);
      part.max = std::max(part.max, score);
    }
    part.sum = softened(p, first, part.max);
    for (std::uint32_t b = 0; b < R / 64; ++b) {
      std::vector<float> weights;
      std::vector<Block> values;
      for (int j = first; j <= last; ++j) {
        values.push_back(block_of(DType::kR4, rotated(head_of(v_, s_, std::size_t(j), head)), b));
        weights.push_back(p[std::size_t(j - first)] * scale_of(DType::kR4, values.back()));
      }
      const Digits weight = digits(weights);
      for (std::uint32_t i = 0; i < 64; ++i) {
        std::int64_t high = 0, low = 0;
        for (std::size_t j = 0; j < values.size(); ++j) {
          const int level = level_of(DType::kR4, values[j].codes[i]);
          high += level * weight.high[j], low += level * weight.low[j];
        }
        part.o[b * 64 + i] = joined(high, low) * weight.d;
      }
    }
    return part;
  }
  std::vector<double> stored(const std::vector<float>& rows, DType type, int token, std::uint32_t head) const {
    const auto x = rotated(head_of(rows, s_, std::size_t(token), head));
    std::vector<double> values;
    for (std::uint32_t b = 0; b < s_.head_dim / 64; ++b) {
      const Block block = block_of(type, x, b);
      for (const int code : block.codes) values.push_back(double(scale_of(type, block)) * level_of(type, code));
    }
    return values;
  }
  Shape s_;
  Random random_;
  std::vector<float> k_, v_;
  std::vector<std::int32_t> pos_;
  Tensor keys_, values_;
};

TEST(RotatedKv, AttentionIsTheOraclesBits) {
  for (const Shape& s : shapes()) expect_the_oracles_bits([&] { return History(s, 300); }, name(s));
}

// Weights far apart: most of them are rounded to 0.
TEST(RotatedKv, AttentionOfSharpScoresIsTheOraclesBits) {
  History history({}, 300, 12.0);
  const auto q = history.queries(kEdges.size(), 2);
  EXPECT_EQ(as<float>(run(history.attention(Op::FLASH_ATTN, q, kEdges, 2))[0]), history.expected(q, kEdges, 2, 0, 0));
}

TEST(RotatedKv, AttentionIsThatOfFloat64) {
  for (const Shape& s : shapes())
    for (const auto& [group, window, softcap] :
         {std::tuple{1u, 0u, 0.0f}, {3u, 0u, 0.0f}, {2u, 24u, 0.0f}, {1u, 129u, 2.0f}}) {
      History history(s, 300);
      const auto q = history.queries(kEdges.size(), group);
      expect_near(run(history.attention(Op::FLASH_ATTN_BATCHED, q, kEdges, group, window, softcap))[0],
                  history.in_doubles(q, kEdges, group, window, softcap), 1e-4, 1e-4, name(s));
    }
}

// How far rounding alone moves the output, by the root of the mean square: the bound of a broken rotation or table is
// far above.
TEST(RotatedKv, IsCloseToWhatWasNotRounded) {
  for (const Shape& s : shapes()) {
    History history(s, 300);
    const auto q = history.queries(1, 1);
    const auto got = as<float>(run(history.attention(Op::FLASH_ATTN, q, {299}, 1))[0]);
    EXPECT_LT(error_of(got, history.unrounded(q, 299)), s.k == DType::kR8 ? 0.12 : 0.25) << name(s);
  }
}

TEST(RotatedKv, BitsOfATokenAreItsOwn) {
  for (const Shape& s : shapes()) expect_bits_are_a_tokens_own([&](std::int32_t n) { return History(s, n); }, name(s));
}

TEST(RotatedKv, BitsOfPromptsAreTheSetsAlike) {
  for (const Shape& s : shapes())
    expect_bits_of_prompts_whatever_set([&](std::int32_t n) { return History(s, n); }, name(s));
}

TEST(RotatedKv, BitsDoNotDependOnTheSetNorOnTheCutsBetweenThreads) {
  for (const Shape& s : shapes())
    for (const std::uint32_t window : {0u, 150u}) {
      History history(s, 1101);
      expect_bits_whatever_set_and_threads(history, window, name(s));
    }
}

TEST(RotatedKv, BitsAreThoseOfTheContract) {
  std::vector<std::uint64_t> hashes;
  for (const Shape& s : shapes()) {
    History history(s, plain_values(200 * s.width(), 1), plain_values(200 * s.width(), 2));
    const auto q = plain_values(4 * 2 * s.width(), 3);
    hashes.push_back(hash_of(run(history.attention(Op::FLASH_ATTN, q, {199, 128, 127, 16}, 2))[0]));
  }
  EXPECT_EQ(hashes, (std::vector<std::uint64_t>{4724951006788762480u, 5551660646272489758u, 6613457230597963551u,
                                                515481598035252853u, 6653307188385261039u, 12206032906423077514u}));
}

TEST(RotatedKv, NanStaysInItsHead) {
  History history({}, 150);
  expect_nan_stays_in_its_head(history);
}

}  // namespace
}  // namespace zinc_rt::kernel_test::rotated_kv
