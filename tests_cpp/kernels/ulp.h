// Distance of a float from a double, in units of the last place of the float nearest to the double.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace zinc_rt::kernel_test {

inline double ulp_distance(float actual, double expected) {
  if (std::isnan(expected)) return std::isnan(actual) ? 0 : INFINITY;
  const auto nearest = static_cast<float>(expected);
  if (std::isinf(nearest) || std::isinf(actual)) return actual == nearest ? 0 : INFINITY;
  const int exponent = nearest == 0 ? -126 : std::max(std::ilogb(nearest), -126);
  return std::abs(actual - expected) / std::ldexp(1.0, exponent - 23);
}

struct Function {
  const char* name;
  float (*exact)(float);
  void (*row)(const float* x, float* y, std::size_t n);  // the same of n numbers
  double (*libm)(double);
  float low, high;  // the domain of the promise
};

}  // namespace zinc_rt::kernel_test
