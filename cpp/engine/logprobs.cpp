#include "engine/logprobs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/multiversion.h"

namespace zinc_rt {
namespace {

constexpr std::size_t kLanes = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Calls body(pointer to the first logit, count) for groups of kLanes logits. The last group is filled up with -inf.
template <class Body>
void for_groups(std::span<const float> logits, Body&& body) {
  const std::size_t whole = logits.size() / kLanes * kLanes;
  body(logits.data(), whole);
  if (whole == logits.size()) return;
  std::array<float, kLanes> rest;
  rest.fill(-kInfinity);
  std::ranges::copy(logits.subspan(whole), rest.begin());
  body(rest.data(), kLanes);
}

// Returns the largest of the values; NaNs are ignored.
float max_of(std::span<const float> logits) {
  std::array<float, kLanes> best;
  best.fill(-kInfinity);
  for_groups(logits, [&](const float* l, std::size_t n) {
    for (std::size_t i = 0; i < n; i += kLanes)
      for (std::size_t lane = 0; lane < kLanes; ++lane) best[lane] = std::max(best[lane], l[i + lane]);
  });
  return *std::ranges::max_element(best);
}

// Adds e^(l - max) to each lane's sum. REQUIRES: l <= max. Uses e^x = 2^n e^r with x = n ln 2 + r and |r| <= ln 2 / 2.
// The series of e^r up to degree 11 has an error below 1e-14. It computes four values at a time, because a register of
// x86-64-v3 holds four doubles.
ZRT_MULTIVERSION void add_exponentials(const float* l, std::size_t n_logits, double max, double* sums) {
  constexpr std::size_t kWidth = 4;
  using Floats [[gnu::vector_size(kWidth * sizeof(float))]] = float;
  using Doubles [[gnu::vector_size(kWidth * sizeof(double))]] = double;
  using Bits [[gnu::vector_size(kWidth * sizeof(double))]] = std::uint64_t;
  // Adding and subtracting kRound rounds to an integer, which the low bits of the sum hold.
  constexpr double kRound = 0x1.8p52;
  constexpr double kLog2E = 0x1.71547652b82fep0;
  constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;  // so that n * kLn2High is exact
  // Exponents below kLeast are replaced by it. e^-700 is small enough to vanish beside the largest term of the sum,
  // which is 1, and large enough for 2^n to be a normal number.
  constexpr double kLeast = -700;
  Doubles total[kLanes / kWidth];
  std::memcpy(total, sums, sizeof total);
  for (std::size_t i = 0; i < n_logits; i += kLanes)
    for (std::size_t part = 0; part < kLanes / kWidth; ++part) {
      Floats logits;
      std::memcpy(&logits, l + i + part * kWidth, sizeof logits);
      Doubles x = __builtin_convertvector(logits, Doubles) - max;
      x = x < kLeast ? Doubles{} + kLeast : x;  // keeps NaN as it is
      const Doubles shifted = x * kLog2E + kRound, n = shifted - kRound;
      const Doubles r = (x - n * kLn2High) - n * kLn2Low;
      Doubles p = r * (1.0 / 39916800) + 1.0 / 3628800;
      p = p * r + 1.0 / 362880;
      p = p * r + 1.0 / 40320;
      p = p * r + 1.0 / 5040;
      p = p * r + 1.0 / 720;
      p = p * r + 1.0 / 120;
      p = p * r + 1.0 / 24;
      p = p * r + 1.0 / 6;
      p = p * r + 0.5;
      p = p * r + 1.0;
      p = p * r + 1.0;
      total[part] += reinterpret_cast<Doubles>(reinterpret_cast<Bits>(p) + (reinterpret_cast<Bits>(shifted) << 52));
    }
  std::memcpy(sums, total, sizeof total);
}

double sum_of(std::span<const float> logits, double max) {
  std::array<double, kLanes> sums{};
  for_groups(logits, [&](const float* l, std::size_t n) { add_exponentials(l, n, max, sums.data()); });
  double sum = 0;
  for (const double s : sums) sum += s;
  return sum;
}

bool any_above(const float* l, float bar) {
  bool found = false;
  for (std::size_t lane = 0; lane < kLanes; ++lane) found |= l[lane] > bar;
  return found;
}

}  // namespace

TokenLogprob logprob_of(std::span<const float> logits, std::int32_t token, std::uint32_t n_top) {
  const float max = max_of(logits);
  RowLogprobs row{.sum = sum_of(logits, max), .max = max, .logit = logits[static_cast<std::size_t>(token)], .top = {}};
  if (n_top == 0) return logprob_of(row, token);
  // Tokens are visited in the order of their ids. So if the list is full, a value no larger than its last value does
  // not enter the list.
  std::vector<TokenLogit> top;
  top.reserve(std::min<std::size_t>(n_top, logits.size()) + 1);
  const auto offer = [&](std::size_t id) {
    const float l = logits[id];
    if (std::isnan(l) || (top.size() == n_top && !(l > top.back().logit))) return;
    auto at = top.end();
    while (at != top.begin() && l > std::prev(at)->logit) --at;
    top.insert(at, {static_cast<std::int32_t>(id), l});
    if (top.size() > n_top) top.pop_back();
  };
  const auto skips = [&](std::size_t id) {
    return top.size() == n_top && id + kLanes <= logits.size() && !any_above(&logits[id], top.back().logit);
  };
  for (std::size_t id = 0; id < logits.size();) {
    if (skips(id))
      id += kLanes;
    else
      offer(id++);
  }
  row.top = top;
  return logprob_of(row, token);
}

TokenLogprob logprob_of(const RowLogprobs& row, std::int32_t token) {
  const double log_sum = row.max + std::log(row.sum);
  TokenLogprob out{token, row.logit - log_sum, {}};
  out.top.reserve(row.top.size());
  for (const TokenLogit& entry : row.top) out.top.emplace_back(entry.id, entry.logit - log_sum);
  return out;
}

}  // namespace zinc_rt
