// The functions of kernels/common/exact_math.h with their libm twins and domains, for the sweeps.
#pragma once

#include "kernels/common/exact_math.h"
#include "ulp.h"

namespace zinc_rt::kernel_test {

inline constexpr float kMax = 3.4028235e38f;
inline double log1p_exp(double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}
inline const Function kFunctions[] = {
    {"exp", exact::exp, std::exp, -kMax, kMax},
    {"sigmoid", exact::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -kMax, kMax},
    {"silu", exact::silu, [](double x) { return x < -750 ? -0.0 : x / (1 + std::exp(-x)); }, -kMax, kMax},
    {"gelu_tanh", exact::gelu_tanh,
     [](double x) {
       return x < -50 ? -0.0 : x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
     },
     -kMax, kMax},
    {"gelu", exact::gelu, [](double x) { return x < -50 ? -0.0 : 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }, -kMax,
     kMax},
    {"tanh", exact::tanh, std::tanh, -kMax, kMax},
    {"softplus", exact::softplus, log1p_exp, -kMax, kMax},
    {"rcp", exact::rcp, [](double x) { return 1 / x; }, 0x1p-125f, 0x1p125f},
    {"rsqrt", exact::rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0x1p-125f, 0x1p125f},
};

// The largest distance over every `stride`-th bit pattern from `first` on.
inline double sweep(const Function& f, std::uint64_t first, std::uint64_t stride, float& worst) {
  double largest = 0;
  for (std::uint64_t bits = first; bits < (1ull << 32); bits += stride) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (!(x >= f.low && x <= f.high)) continue;
    const double distance = ulp_distance(f.exact(x), f.libm(x));
    if (distance > largest) largest = distance, worst = x;
  }
  return largest;
}

}  // namespace zinc_rt::kernel_test
