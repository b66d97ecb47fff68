// What the tests of KV cache cells that lie by pages share (rotated_kv_test.cpp, integer_kv_test.cpp): histories of two
// heads in shuffled pages, attention over them, and what holds for it whatever the cells are.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "harness.h"
#include "kernels/common/exact_math.h"

namespace zinc_rt::kernel_test::kv_history {

inline constexpr std::uint32_t kHeads = 2, kPages = 70;
inline constexpr float kScale = 0.11f;

inline std::vector<std::int32_t> shuffled_pages() {
  std::vector<std::int32_t> pages(kPages);
  for (std::size_t i = 0; i < pages.size(); ++i) pages[i] = std::int32_t(i);
  std::mt19937 rng(5);
  std::ranges::shuffle(pages, rng);
  return pages;
}

// Values of a head of keys and of a head of values.
struct HeadDims {
  std::uint32_t k, v;
};
inline Case kv_write(const HeadDims& dims, const std::vector<float>& k, const std::vector<float>& v,
                     const std::vector<std::int32_t>& pos, const Tensor& keys, const Tensor& values) {
  return {Op::KV_WRITE_BATCHED,
          {f32({kTokens, kHeads * dims.k}, k), f32({kTokens, kHeads * dims.v}, v), i32({kTokens}, pos),
           i32({kTokens}, std::vector<std::int32_t>(pos.size(), 0)), i32({1, kPages}, shuffled_pages()), keys, values},
          {update(5), update(6)},
          {{"head_dim", dims.k}},
          {std::uint32_t(pos.size()), 0}};
}

// `group` query heads read a head of keys.
struct Attention {
  std::uint32_t group, window = 0;
  float softcap = 0;
  std::vector<float> sinks = {};  // one per query head, or none
};
inline Case attention_over(Op op, const HeadDims& dims, const std::vector<float>& q,
                           const std::vector<std::int32_t>& pos, const Attention& a, const Tensor& keys,
                           const Tensor& values) {
  return {op,
          {f32({kTokens, a.group * kHeads * dims.k}, q), keys, values, i32({kTokens}, pos),
           i32({kTokens}, std::vector<std::int32_t>(pos.size(), 0)), i32({1, kPages}, shuffled_pages()),
           a.sinks.empty() ? absent() : f32({a.group * kHeads}, a.sinks)},
          {{DType::kF32, {kTokens, a.group * kHeads * dims.v}}},
          {{"n_heads", a.group * kHeads},
           {"n_kv_heads", kHeads},
           {"head_dim", dims.k},
           {"v_head_dim", dims.v},
           {"scale", kScale},
           {"window", a.window},
           {"softcap", a.softcap}},
          {std::uint32_t(pos.size()), 0}};
}

// The root of the mean square of the error, as a part of that of what was wanted.
inline double error_of(const std::vector<float>& got, const std::vector<double>& wanted) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    error += (got[i] - wanted[i]) * (got[i] - wanted[i]), norm += wanted[i] * wanted[i];
  return std::sqrt(error / norm);
}

// Positions at the borders of pages and chunks.
inline const std::vector<std::int32_t> kEdges{0, 1, 15, 16, 17, 127, 128, 129, 255, 256, 299};

// ---- the oracle's: what the contract has of all caches whose sums of values are of integers ----

inline float largest(std::span<const float> x) {
  float amax = 0;
  for (const float v : x) amax = std::isfinite(v) ? std::max(amax, std::abs(v)) : NAN;
  return amax;
}
// x as codes of 16 bits; their two digits are summed apart, as the contract has it.
struct Digits {
  std::vector<std::int64_t> high, low;
  float d = 0;
};
inline Digits digits(const std::vector<float>& x) {
  Digits q{std::vector<std::int64_t>(x.size()), std::vector<std::int64_t>(x.size())};
  const float amax = largest(x);
  if (!(amax <= 0x1p120f)) q.d = NAN;
  if (!(amax <= 0x1p120f) || amax < 0x1p-100f) return q;
  q.d = amax / 32639.0f;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto code = std::int64_t(std::nearbyint(x[i] * (32639.0f / amax)));
    q.low[i] = code & 255;
    if (q.low[i] > 127) q.low[i] -= 256;
    q.high[i] = (code - q.low[i]) / 256;
  }
  return q;
}
inline float joined(std::int64_t high, std::int64_t low) {
  return std::fma(float(high), 256.0f, float(low));
}
// A chunk of a head, or a head so far.
struct Part {
  float max = 0, sum = 0;
  std::vector<float> o;
};
// Turns the scores of a chunk's tokens, from position `first` on, into exponentials. Returns their sum.
inline float softened(std::vector<float>& scores, int first, float max) {
  float lane[16] = {};
  for (std::size_t i = 0; i < scores.size(); ++i) {
    scores[i] = exact::exp(scores[i] - max);
    lane[(std::size_t(first) + i) % 16] += scores[i];
  }
  for (int step : {8, 4, 2, 1})
    for (int l = 0; l < step; ++l) lane[l] += lane[l + step];
  return lane[0];
}
inline Part merged(const Part& total, const Part& chunk) {
  Part both{std::max(total.max, chunk.max), 0, total.o};
  const float a = exact::exp(total.max - both.max), b = exact::exp(chunk.max - both.max);
  both.sum = std::fma(chunk.sum, b, total.sum * a);
  for (std::size_t i = 0; i < both.o.size(); ++i) both.o[i] = std::fma(chunk.o[i], b, total.o[i] * a);
  return both;
}
// Of positions first to last; chunk_of(first, last) gives those of one chunk.
template <class ChunkOf>
Part sum_of_chunks(int first, int last, const ChunkOf& chunk_of) {
  Part total;
  for (int at = first / 128 * 128; at <= last; at += 128) {
    const Part chunk = chunk_of(std::max(at, first), std::min(at + 127, last));
    total = at <= first ? chunk : merged(total, chunk);
  }
  return total;
}

// ---- what holds whatever the cells are ----

// Attention over a history has the bits of its own expected(), with a window and a softcap, too. make() gives a fresh one.
template <class Make>
void expect_the_oracles_bits(const Make& make, const std::string& name) {
  for (const auto& [group, window, softcap] :
       {std::tuple{1u, 0u, 0.0f}, {3u, 0u, 0.0f}, {2u, 24u, 0.0f}, {1u, 129u, 2.0f}}) {
    auto history = make();
    const auto q = history.queries(kEdges.size(), group);
    EXPECT_EQ(as<float>(run(history.attention(Op::FLASH_ATTN_BATCHED, q, kEdges, group, window, softcap))[0]),
              history.expected(q, kEdges, group, window, softcap))
        << name << ", " << group << " heads, window " << window;
  }
}

// history_of(n) has n tokens, the first of which are those of a shorter one.
template <class HistoryOf>
void expect_bits_are_a_tokens_own(const HistoryOf& history_of, const std::string& name) {
  auto history = history_of(300), shorter = history_of(141);
  const std::vector<std::int32_t> pos{0, 15, 130, 128, 127, 299, 298};
  const auto q = history.queries(pos.size(), 3);
  const auto c = history.attention(Op::FLASH_ATTN_BATCHED, q, pos, 3);
  expect_rows_independent(c);
  EXPECT_EQ(run(c), run(history.attention(Op::FLASH_ATTN, q, pos, 3))) << name;
  // What comes later is not read.
  const std::vector<std::int32_t> early{140, 129, 7};
  const auto few = history.queries(early.size(), 3);
  EXPECT_EQ(run(history.attention(Op::FLASH_ATTN, few, early, 3)),
            run(shorter.attention(Op::FLASH_ATTN, few, early, 3)))
      << name;
}

// Prompts of few rows and of more than a piece takes, at the borders of pages and chunks: every set has the reference's
// bits.
template <class HistoryOf>
void expect_bits_of_prompts_whatever_set(const HistoryOf& history_of, const std::string& name) {
  for (const std::uint32_t window : {0u, 20u, 128u})
    for (const std::int32_t first : {0, 57, 121})
      for (const std::int32_t n : {2, 5, 16, 40}) {
        auto history = history_of(first + n);
        std::vector<std::int32_t> pos;
        for (std::int32_t i = 0; i < n; ++i) pos.push_back(first + i);
        const auto c = history.attention(Op::FLASH_ATTN_BATCHED, history.queries(pos.size(), 3), pos, 3, window);
        const auto expected = run(c);
        for (const auto* set : fast_sets()) {
          ring::CpuRing ring(1, *set, false);
          EXPECT_EQ(expected, run_on(c, ring)) << name << ", " << set->name << ", window " << window << ", " << n;
        }
      }
}

// Steps of few tokens with long histories, which are cut between threads: every set on any number of threads has the
// bits of the reference on one.
template <class History>
void expect_bits_whatever_set_and_threads(History& history, std::uint32_t window, const std::string& name) {
  auto sets = fast_sets();
  sets.push_back(*ring::find_kernel_set("ref"));
  for (const auto& pos : {std::vector<std::int32_t>{1100}, {3, 1024, 200, 900}}) {
    const auto c = history.attention(Op::FLASH_ATTN, history.queries(pos.size(), 3), pos, 3, window);
    ring::CpuRing alone(1, **ring::find_kernel_set("ref"), false);
    const auto expected = run_on(c, alone);
    for (const auto* set : sets)
      for (const int threads : {1, 3, 8}) {
        ring::CpuRing ring(threads, *set, false);
        EXPECT_EQ(expected, run_on(c, ring)) << name << ", " << set->name << " on " << threads << " threads";
      }
  }
}

// A history of 150 tokens, heads of 64 values.
template <class History>
void expect_nan_stays_in_its_head(History& history) {
  auto q = history.queries(1, 1);
  const auto clean = as<float>(run(history.attention(Op::FLASH_ATTN, q, {140}, 1))[0]);
  q[70] = NAN;  // head 1
  const auto y = as<float>(run(history.attention(Op::FLASH_ATTN, q, {140}, 1))[0]);
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (i / 64 == 1)
      EXPECT_TRUE(std::isnan(y[i]));
    else
      EXPECT_EQ(y[i], clean[i]);
  }
}

}  // namespace zinc_rt::kernel_test::kv_history
