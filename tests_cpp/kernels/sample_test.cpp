// SAMPLE and its random numbers.
#include <bit>

#include "harness.h"
#include "kernels/common/exact_math.h"
#include "kernels/common/philox.h"
#include "kernels/common/sample_params.h"

namespace zinc_rt::kernel_test {
namespace {

TEST(Philox, PublishedVectors) {  // Random123's kat_vectors, philox4x32 with 10 rounds
  const auto words = [](philox::Counter c) { return std::vector<std::uint32_t>(c.v, c.v + 4); };
  EXPECT_EQ(words(philox::rounds10({{0, 0, 0, 0}}, 0, 0)),
            (std::vector<std::uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t f = 0xffffffff;
  EXPECT_EQ(words(philox::rounds10({{f, f, f, f}}, f, f)),
            (std::vector<std::uint32_t>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(words(philox::rounds10({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0)),
            (std::vector<std::uint32_t>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  for (std::uint32_t p = 0; p < 1000; ++p) {
    const float u = philox::uniform(1, 2, p);
    EXPECT_TRUE(u >= 0 && u < 1);
  }
}

SampleParams params() {
  SampleParams p{};
  p.top_p = 1, p.typical_p = 1, p.repetition_penalty = 1, p.temperature = 1;
  return p;
}

using Bias = std::vector<std::pair<std::int32_t, float>>;
using Mask = std::vector<std::uint32_t>;

std::vector<std::int32_t> sample(std::uint32_t v, const std::vector<float>& logits,
                                 const std::vector<SampleParams>& rows, const std::vector<std::int32_t>& history = {0},
                                 const Bias& bias = {{0, 0.0f}}, const Mask& mask = {0}) {
  const auto n = static_cast<std::uint32_t>(rows.size());
  std::vector<std::uint32_t> words(std::size_t{kSampleParamWords} * n);
  std::memcpy(words.data(), rows.data(), sizeof(SampleParams) * n);
  std::vector<std::uint32_t> entries;
  for (const auto& [id, value] : bias) {
    entries.push_back(std::uint32_t(id));
    entries.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return as<std::int32_t>(run({Op::SAMPLE,
                               {f32({kOutputs, v}, logits), u32({kOutputs, kSampleParamWords}, words),
                                i32({std::uint32_t(history.size())}, history),
                                u32({std::uint32_t(bias.size()), 2}, entries), u32({std::uint32_t(mask.size())}, mask)},
                               {{DType::kI32, {kOutputs}}},
                               {},
                               {0, n}})[0]);
}
std::int32_t sample_one(const std::vector<float>& logits, SampleParams p,
                        const std::vector<std::int32_t>& history = {0}, const Bias& bias = {{0, 0.0f}},
                        const Mask& mask = {0}) {
  return sample(std::uint32_t(logits.size()), logits, {p}, history, bias, mask)[0];
}

// The chances by the documented steps in float64.
std::vector<double> chances(const std::vector<float>& logits, const SampleParams& p,
                            const std::vector<std::int32_t>& history, const Bias& bias = {}) {
  std::vector<double> l(logits.begin(), logits.end());
  for (std::uint32_t i = p.bias_begin; i < p.bias_begin + p.n_bias; ++i)
    if (std::size_t(bias[i].first) < l.size()) l[std::size_t(bias[i].first)] += bias[i].second;
  std::map<std::int32_t, int> generated;
  std::map<std::int32_t, bool> seen;
  for (std::uint32_t i = 0; i < p.n_history; ++i) {
    seen[history[p.history_begin + i]] = true;
    if (i >= p.n_prompt) ++generated[history[p.history_begin + i]];
  }
  for (const auto& [id, yes] : seen) {
    double& x = l[std::size_t(id)];
    x = x > 0 ? x / p.repetition_penalty : x * p.repetition_penalty;
    if (generated[id] > 0) x -= p.presence_penalty + generated[id] * double(p.frequency_penalty);
  }
  std::vector<std::size_t> order(l.size());
  for (std::size_t i = 0; i < l.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return l[a] > l[b]; });
  if (p.top_k > 0 && p.top_k < order.size()) order.resize(p.top_k);
  std::vector<double> chance(l.size(), 0.0);
  double total = 0, running = 0;
  for (const auto i : order) total += std::exp((l[i] - l[order[0]]) / p.temperature);
  for (const auto i : order) {
    const double e = std::exp((l[i] - l[order[0]]) / p.temperature);
    if (i != order[0] && (running >= p.top_p * total || e < p.min_p)) break;
    running += e;
    chance[i] = e;
  }
  if (p.typical_p < 1) {
    double entropy = 0;
    for (const double c : chance) entropy -= c > 0 ? c / running * std::log(c / running) : 0;
    const auto oddness = [&](std::size_t i) {
      return chance[i] > 0 ? std::fabs(-std::log(chance[i] / running) - entropy) : INFINITY;
    };
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return oddness(a) < oddness(b); });
    const double wanted = p.typical_p * running;
    running = 0;
    for (const auto i : order) {
      if (running > 0 && running >= wanted) chance[i] = 0;
      running += chance[i];
    }
  }
  for (double& c : chance) c /= running;
  return chance;
}

TEST(Sample, GreedyTakesTheLargestAndTheLowerId) {
  auto p = params();
  for (const float temperature : {0.0f, -1.0f, 1e-7f, 1e-40f, NAN}) {
    p.temperature = temperature;
    EXPECT_EQ(sample_one({1, 5, 5, 2}, p), 1) << temperature;
    EXPECT_EQ(sample_one({NAN, -INFINITY, NAN, -3}, p), 3);
    EXPECT_EQ(sample_one({NAN, NAN}, p), kSampleNone);
  }
}

TEST(Sample, TopKOneIsGreedy) {
  Random random(1);
  auto p = params();
  p.top_k = 1;
  const auto logits = random.normal(500);
  for (p.position = 0; p.position < 20; ++p.position)
    EXPECT_EQ(sample_one(logits, p), std::ranges::max_element(logits) - logits.begin());
}

TEST(Sample, NanAndInfinityAreHandled) {
  auto p = params();
  for (p.position = 0; p.position < 50; ++p.position) {
    const auto id = sample_one({NAN, 1, 1, NAN, -INFINITY}, p);
    EXPECT_TRUE(id == 1 || id == 2) << id;
  }
}

// However it is picked: greedily, with penalties, with a bias, drawn, and drawn from the typical ones.
TEST(Sample, ARowWithoutAFiniteMaximumGivesNoToken) {
  const std::vector<std::vector<float>> broken{{1, 2, INFINITY, 3}, {NAN, NAN, NAN}, {-INFINITY, -INFINITY},
                                               {NAN, -INFINITY},    {INFINITY, NAN}, {NAN}};
  auto greedy = params(), penalized = params(), biased = params(), typical = params(), first = params();
  greedy.temperature = penalized.temperature = biased.temperature = 0;
  penalized.presence_penalty = 2, penalized.n_history = 1;
  biased.n_bias = 1;
  typical.typical_p = 0.5f;
  first.top_k = 1, first.top_p = 0.5f, first.min_p = 0.5f;
  for (const auto& p : {greedy, penalized, biased, typical, first, params()}) {
    for (const auto& row : broken) EXPECT_EQ(sample_one(row, p), kSampleNone) << row[0];
    EXPECT_EQ(sample_one({NAN, 3, -INFINITY, NAN}, p), 1);
  }
}

TEST(Sample, IsAFunctionOfSeedPositionAndRowAlone) {
  Random random(2);
  const std::uint32_t v = 300;
  std::vector<float> logits;
  std::vector<SampleParams> rows;
  for (std::uint32_t r = 0; r < 8; ++r) {
    const auto row = random.normal(v, 2.0);
    logits.insert(logits.end(), row.begin(), row.end());
    auto p = params();
    p.seed_lo = r, p.seed_hi = 9, p.position = 100 + r, p.top_k = 40, p.top_p = 0.9f;
    rows.push_back(p);
  }
  const auto together = sample(v, logits, rows);
  for (std::size_t r = 0; r < 8; ++r)
    EXPECT_EQ(
        sample_one({logits.begin() + std::ptrdiff_t(r * v), logits.begin() + std::ptrdiff_t((r + 1) * v)}, rows[r]),
        together[r]);
  std::vector<bool> differs(3, false);
  for (std::uint32_t i = 0; i < 20; ++i) {
    auto p = rows[0];
    const std::vector<float> row(logits.begin(), logits.begin() + v);
    p.seed_lo += i, differs[0] = differs[0] || sample_one(row, p) != together[0];
    p = rows[0], p.seed_hi += i, differs[1] = differs[1] || sample_one(row, p) != together[0];
    p = rows[0], p.position += i, differs[2] = differs[2] || sample_one(row, p) != together[0];
  }
  EXPECT_EQ(differs, std::vector<bool>(3, true));
}

struct Setting {
  const char* name;
  std::function<void(SampleParams&)> change;
};
const Setting kSettings[] = {
    {"plain", [](SampleParams&) {}},
    {"hot", [](SampleParams& p) { p.temperature = 2.5f; }},
    {"top_k", [](SampleParams& p) { p.top_k = 4; }},
    {"top_p", [](SampleParams& p) { p.top_p = 0.7f; }},
    {"min_p", [](SampleParams& p) { p.min_p = 0.2f; }},
    {"all", [](SampleParams& p) { p.temperature = 1.3f, p.top_k = 8, p.top_p = 0.9f, p.min_p = 0.05f; }},
    {"typical_p", [](SampleParams& p) { p.typical_p = 0.6f; }},
    {"little typical_p", [](SampleParams& p) { p.typical_p = 0; }},
    {"typical_p of the rest",
     [](SampleParams& p) { p.typical_p = 0.8f, p.top_k = 9, p.top_p = 0.95f, p.min_p = 0.05f; }},
    {"bias", [](SampleParams& p) { p.bias_begin = 1, p.n_bias = 6; }},
    {"bias and penalties",
     [](SampleParams& p) {
       p.bias_begin = 2, p.n_bias = 4, p.repetition_penalty = 1.3f, p.frequency_penalty = 0.5f, p.typical_p = 0.9f;
     }},
    {"repetition", [](SampleParams& p) { p.repetition_penalty = 1.5f; }},
    {"presence", [](SampleParams& p) { p.presence_penalty = 1.0f; }},
    {"frequency", [](SampleParams& p) { p.frequency_penalty = 0.5f; }},
    {"all penalties",
     [](SampleParams& p) { p.repetition_penalty = 1.2f, p.presence_penalty = 0.5f, p.frequency_penalty = 0.3f; }},
};

// 20,000 draws with fixed seeds against the chances: a chi-square of about as many as there are tokens, and no token
// without a chance is ever drawn.
TEST(Sample, DrawsFollowTheChances) {
  const std::uint32_t v = 12, draws = 20000;
  const std::vector<float> logits{0.3f, 2.0f, -1.0f, 1.5f, 0.0f, 2.0f, -3.0f, 0.7f, 1.0f, -0.5f, 0.2f, 1.8f};
  const std::vector<std::int32_t> history{99, 1, 2, 1, 3, 5, 5, 5, 40, -1, 6};
  const Bias bias{{4, 50.0f}, {0, 1.5f}, {1, -INFINITY}, {6, 3.0f}, {12, 9.0f}, {-1, 9.0f}, {3, -1.25f}, {5, 80.0f}};
  for (const Setting& setting : kSettings) {
    auto p = params();
    p.history_begin = 1, p.n_prompt = 3, p.n_history = 7;
    p.seed_lo = 12345;
    setting.change(p);
    std::vector<SampleParams> rows;
    std::vector<float> all;
    for (std::uint32_t i = 0; i < draws; ++i) {
      p.position = i;
      rows.push_back(p);
      all.insert(all.end(), logits.begin(), logits.end());
    }
    const auto expected = chances(logits, p, history, bias);
    std::vector<double> count(v, 0.0);
    for (const auto id : sample(v, all, rows, history, bias)) ++count[std::size_t(id)];
    double chi = 0;
    int free = -1;
    for (std::size_t i = 0; i < v; ++i) {
      if (expected[i] == 0) {
        EXPECT_EQ(count[i], 0) << setting.name << " token " << i;
        continue;
      }
      ++free;
      chi += (count[i] - expected[i] * draws) * (count[i] - expected[i] * draws) / (expected[i] * draws);
    }
    EXPECT_LT(chi, free + 4.5 * std::sqrt(2.0 * free) + 1) << setting.name;
  }
}

// The draw as documented, step by step over all candidates: a comparison sort, and float sums of every one of them.
std::int32_t drawn_in_full(const std::vector<float>& logits, const SampleParams& p) {
  std::vector<float> l(logits);
  for (float& x : l) x = x * exact::rcp(p.temperature);
  std::vector<std::int32_t> order(l.size());
  for (std::size_t i = 0; i < l.size(); ++i) order[i] = std::int32_t(i);
  const auto at = [&](std::int32_t i) { return l[std::size_t(i)]; };
  std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) {
    return std::isnan(at(a)) || std::isnan(at(b)) ? !std::isnan(at(a)) && std::isnan(at(b)) : at(a) > at(b);
  });
  std::size_t n = p.top_k > 0 ? std::min<std::size_t>(p.top_k, l.size()) : l.size();
  std::vector<float> chance(n);
  float total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const float e = exact::exp(at(order[i]) - at(order[0]));
    chance[i] = std::isnan(e) ? 0 : e;
    total += chance[i];
  }
  std::size_t kept = 0;
  for (float sum = 0; p.top_p < 1 && kept < n && (kept == 0 || sum < total * p.top_p);) sum += chance[kept++];
  if (p.top_p < 1) n = kept;
  while (n > 1 && chance[n - 1] < p.min_p) --n;
  total = 0;
  for (std::size_t i = 0; i < n; ++i) total += chance[i];
  const float u = philox::uniform(p.seed_lo, p.seed_hi, p.position) * total;
  float sum = 0;
  for (std::size_t i = 0; i < n; ++i)
    if ((sum += chance[i]) > u) return order[i];
  return order[0];
}

TEST(Sample, DrawsAreThoseOfTheSortedListOfAllCandidates) {
  Random random(5);
  const std::uint32_t v = 4000;
  for (const double spread : {0.5, 3.0, 9.0, 60.0}) {
    auto logits = random.normal(v, spread);
    for (int i = 0; i < 300; ++i) logits[random.below(v)] = std::round(logits[random.below(v)]);  // ties
    for (const float odd : {NAN, -NAN, -INFINITY, 0.0f, -0.0f, 1e-42f, -1e-42f})
      for (int i = 0; i < 5; ++i) logits[random.below(v)] = odd;
    auto p = params();
    for (p.position = 0; p.position < 300; ++p.position) {
      p.temperature = p.position % 3 == 0 ? 1.7f : 1.0f;
      p.top_k = p.position % 5 == 0 ? random.below(v + 100) : 0;
      p.top_p = p.position % 7 == 0 ? 0.95f : p.position % 7 == 1 ? 0.99999997f : 1.0f;
      p.min_p = p.position % 11 == 0 ? 0.001f : 0;
      ASSERT_EQ(sample_one(logits, p), drawn_in_full(logits, p)) << "spread " << spread << " position " << p.position;
    }
  }
}

TEST(Sample, GreedyWithPenaltiesFollowsTheChances) {
  Random random(3);
  for (int trial = 0; trial < 30; ++trial) {
    const auto logits = random.normal(50, 2.0);
    std::vector<std::int32_t> history(20);
    for (auto& id : history) id = std::int32_t(random.below(50));
    auto p = params();
    p.n_prompt = 8, p.n_history = 20, p.repetition_penalty = 1.4f, p.presence_penalty = 0.6f,
    p.frequency_penalty = 0.4f;
    const auto chance = chances(logits, p, history);
    p.temperature = 0;
    EXPECT_EQ(sample_one(logits, p, history), std::ranges::max_element(chance) - chance.begin());
  }
}

TEST(Sample, GreedyWithBiasTakesTheLargestSum) {
  auto p = params();
  p.temperature = 0, p.n_bias = 3;
  EXPECT_EQ(sample_one({1, 5, 5, 2}, p, {0}, {{3, 3.5f}, {1, -0.5f}, {9, 100.0f}}), 3);
  EXPECT_EQ(sample_one({1, 5, 5, 2}, p, {0}, {{1, -INFINITY}, {2, -INFINITY}, {2, 100.0f}}), 3);
  p.presence_penalty = 2, p.n_history = 1, p.bias_begin = 1, p.n_bias = 1;
  EXPECT_EQ(sample_one({1, 5, 4, 2}, p, {1}, {{1, 100.0f}, {0, 2.5f}}), 2);
  p.n_bias = 2;  // all are forbidden
  EXPECT_EQ(sample_one({1, 5}, p, {1}, {{1, 100.0f}, {0, -INFINITY}, {1, -INFINITY}}), kSampleNone);
  p.temperature = 1;
  EXPECT_EQ(sample_one({1, 5}, p, {1}, {{1, 100.0f}, {0, -INFINITY}, {1, -INFINITY}}), kSampleNone);
}

TEST(Sample, AMaskComesBeforeAllElse) {
  auto p = params();
  p.temperature = 0, p.mask_begin = 1, p.n_mask_words = 1;
  EXPECT_EQ(sample_one({9, NAN, 7, 8}, p, {0}, {{0, 0.0f}}, {~0u, 0b0110}), 2);
  p.n_bias = 1;
  EXPECT_EQ(sample_one({9, 6, 7, 8}, p, {0}, {{0, 100.0f}}, {~0u, 0b0110}), 2);
  EXPECT_EQ(sample_one({9, 6, 7, 8}, p, {0}, {{1, 5.0f}}, {~0u, 0b0110}), 1);
  EXPECT_EQ(sample_one({9, 6, 7, 8}, p, {0}, {{1, 5.0f}}, {~0u, 0}), kSampleNone);
  // Tokens past the last word are not allowed.
  std::vector<float> logits(100, 1.0f);
  logits[40] = 2.0f, logits[70] = 3.0f;
  p.n_bias = 0, p.n_mask_words = 2;
  EXPECT_EQ(sample_one(logits, p, {0}, {{0, 0.0f}}, {0, ~0u, ~0u, ~0u}), 40);
  p.n_mask_words = 3;
  EXPECT_EQ(sample_one(logits, p, {0}, {{0, 0.0f}}, {0, ~0u, ~0u, ~0u}), 70);
  // What is drawn is what would be drawn if the others were minus infinity.
  auto without = logits;
  for (std::size_t id = 0; id < without.size(); ++id)
    if (id % 3 != 0) without[id] = -INFINITY;
  Mask thirds(4);
  for (std::uint32_t id = 0; id < 100; id += 3) thirds[id / 32] |= 1u << id % 32;
  p.temperature = 1, p.mask_begin = 0, p.n_mask_words = 4;
  for (p.position = 0; p.position < 50; ++p.position) {
    auto plain = p;
    plain.n_mask_words = 0;
    EXPECT_EQ(sample_one(logits, p, {0}, {{0, 0.0f}}, thirds), sample_one(without, plain));
  }
}

TEST(Sample, TypicalPHandlesWhatIsNoNumber) {
  auto p = params();
  p.typical_p = 0.5f;
  for (p.position = 0; p.position < 50; ++p.position) {
    const auto id = sample_one({NAN, 1, 1, NAN, -INFINITY}, p);
    EXPECT_TRUE(id == 1 || id == 2) << id;
  }
}

// Rows of one call with a bias of their own each, or none, pick what they pick alone.
TEST(Sample, BiasOfOneRowLeavesTheOthersAlone) {
  Random random(4);
  const std::uint32_t v = 200;
  std::vector<float> logits;
  std::vector<SampleParams> rows;
  Bias bias;
  for (std::uint32_t r = 0; r < 9; ++r) {
    const auto row = random.normal(v, 2.0);
    logits.insert(logits.end(), row.begin(), row.end());
    auto p = params();
    p.seed_lo = r, p.temperature = float(r % 2), p.typical_p = r % 4 < 2 ? 0.9f : 1.0f;
    p.bias_begin = std::uint32_t(bias.size()), p.n_bias = r % 3 == 0 ? 0 : 5 * r;
    for (std::uint32_t i = 0; i < p.n_bias; ++i) bias.emplace_back(random.below(v), float(random.normal(1)[0]) * 5);
    rows.push_back(p);
  }
  const auto together = sample(v, logits, rows, {0}, bias);
  for (std::size_t r = 0; r < 9; ++r) {
    const std::vector<float> row(logits.begin() + std::ptrdiff_t(r * v), logits.begin() + std::ptrdiff_t((r + 1) * v));
    EXPECT_EQ(sample_one(row, rows[r], {0}, bias), together[r]) << r;
    if (rows[r].n_bias > 0) continue;
    EXPECT_EQ(sample_one(row, rows[r]), together[r]) << r;
  }
}

TEST(Sample, HistoryOutsideTheVocabularyIsSkipped) {
  auto p = params();
  p.temperature = 0, p.presence_penalty = 5, p.n_history = 4;
  EXPECT_EQ(sample_one({1, 2, 3}, p, {-1, 3, INT32_MAX, 2}), 1);
}

}  // namespace
}  // namespace zinc_rt::kernel_test
