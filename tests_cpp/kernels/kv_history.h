// What the tests of KV cache cells that lie by pages share (rotated_kv_test.cpp, integer_kv_test.cpp): histories of two
// heads in shuffled pages, attention over them, and what holds for it whatever the cells are.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "harness.h"

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
};
inline Case attention_over(Op op, const HeadDims& dims, const std::vector<float>& q,
                           const std::vector<std::int32_t>& pos, const Attention& a, const Tensor& keys,
                           const Tensor& values) {
  return {op,
          {f32({kTokens, a.group * kHeads * dims.k}, q), keys, values, i32({kTokens}, pos),
           i32({kTokens}, std::vector<std::int32_t>(pos.size(), 0)), i32({1, kPages}, shuffled_pages())},
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
