// std::fma for floats. The one of Debian's C library rounds twice: to a double, then to a float.
#include <bit>
#include <cmath>
#include <cstdint>

extern "C" float fmaf(float a, float b, float c) {
  const double product = static_cast<double>(a) * b;  // exact
  double sum = product + c;
  const auto bits = std::bit_cast<std::uint64_t>(sum);
  // A second rounding changes the result only if the double lies in the middle between two floats, or if the float is
  // subnormal. Then the sum is rounded to odd: of two neighbours it takes the one whose last bit is 1.
  constexpr std::uint64_t kDropped = 0x1FFFFFFF, kMiddle = 0x10000000;
  const double magnitude = std::fabs(sum);
  if ((bits & kDropped) != kMiddle && !(magnitude > 0 && magnitude < 0x1p-125)) return static_cast<float>(sum);
  const double added = sum - product, error = (product - (sum - added)) + (c - added);  // exact
  if (std::fabs(error) > 0 && (bits & 1) == 0) {
    const bool is_larger = (error < 0) == (sum < 0);  // the exact sum is farther from 0
    sum = std::bit_cast<double>(is_larger ? bits + 1 : bits - 1);
  }
  return static_cast<float>(sum);
}
