// The functions of kernels/common/exact_math.h with their libm twins and domains, for the sweeps.
#pragma once

#include <array>

#include "base/multiversion.h"
#include "kernels/common/exact_math.h"
#include "ulp.h"

namespace zinc_rt::kernel_test {

inline constexpr float kMax = 3.4028235e38f;
inline double log1p_exp(double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

// Of many numbers, as the kernels have them: with the processor's fma where it has one.
#define ZRT_ROW(name)                                                                                         \
  ZRT_MULTIVERSION __attribute__((flatten)) static void name##_row(const float* x, float* y, std::size_t n) { \
    for (std::size_t i = 0; i < n; ++i) y[i] = exact::name(x[i]);                                             \
  }
ZRT_ROW(exp)
ZRT_ROW(sigmoid)
ZRT_ROW(silu)
ZRT_ROW(gelu_tanh)
ZRT_ROW(gelu)
ZRT_ROW(tanh)
ZRT_ROW(softplus)
ZRT_ROW(rcp)
ZRT_ROW(rsqrt)
#undef ZRT_ROW

inline const Function kFunctions[] = {
    {"exp", exact::exp, exp_row, std::exp, -kMax, kMax},
    {"sigmoid", exact::sigmoid, sigmoid_row, [](double x) { return 1 / (1 + std::exp(-x)); }, -kMax, kMax},
    {"silu", exact::silu, silu_row, [](double x) { return x < -750 ? -0.0 : x / (1 + std::exp(-x)); }, -kMax, kMax},
    {"gelu_tanh", exact::gelu_tanh, gelu_tanh_row,
     [](double x) {
       return x < -50 ? -0.0 : x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
     },
     -kMax, kMax},
    {"gelu", exact::gelu, gelu_row, [](double x) { return x < -50 ? -0.0 : 0.5 * x * std::erfc(-x / std::sqrt(2.0)); },
     -kMax, kMax},
    {"tanh", exact::tanh, tanh_row, std::tanh, -kMax, kMax},
    {"softplus", exact::softplus, softplus_row, log1p_exp, -kMax, kMax},
    {"rcp", exact::rcp, rcp_row, [](double x) { return 1 / x; }, 0x1p-125f, 0x1p125f},
    {"rsqrt", exact::rsqrt, rsqrt_row, [](double x) { return 1 / std::sqrt(x); }, 0x1p-125f, 0x1p125f},
};

// The largest distance over every `stride`-th bit pattern from `first` on.
inline double sweep(const Function& f, std::uint64_t first, std::uint64_t stride, float& worst) {
  std::array<float, 512> xs, ys;
  double largest = 0;
  for (std::uint64_t bits = first; bits < (1ull << 32);) {
    std::size_t n = 0;
    for (; n < xs.size() && bits < (1ull << 32); bits += stride)
      if (const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits)); x >= f.low && x <= f.high) xs[n++] = x;
    f.row(xs.data(), ys.data(), n);
    for (std::size_t i = 0; i < n; ++i)
      if (const double distance = ulp_distance(ys[i], f.libm(xs[i])); distance > largest)
        largest = distance, worst = xs[i];
  }
  return largest;
}

}  // namespace zinc_rt::kernel_test
