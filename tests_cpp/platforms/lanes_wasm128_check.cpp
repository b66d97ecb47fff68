// lanes_wasm128_check: checks the functions of kernels/cpu_simd/lanes_wasm128.h that are not one instruction each, and
// std::fma, which is ours on this system too (cpp/base/platform/wasi/fused.cpp). `.ci/run platforms` runs it.
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

#include "base/print.h"
#include "kernels/common/half.h"
#include "kernels/cpu_simd/lanes_wasm128.h"

namespace zinc_rt::cpu_simd {
namespace {

bool is_same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

// a * b + c, rounded once: a long double has 113 bits here, and the sums of check_fma() need no more.
float exact_fma(float a, float b, float c) {
  return static_cast<float>(static_cast<long double>(a) * b + c);
}

// Returns how many results of fma() and std::fma() are wrong.
int check_fma(std::mt19937& random, std::uint64_t n) {
  int n_wrong = 0;
  float a[16], b[16], c[16], d[16];
  const auto any = [&] { return std::bit_cast<float>(static_cast<std::uint32_t>(random())); };
  const auto power = [&](int from, int to) {
    return std::ldexp(random() % 2 == 0 ? 1.0f : -1.0f, from + static_cast<int>(random() % (to - from)));
  };
  const auto odd = [&](std::uint32_t least) { return static_cast<float>(least + random() % least | 1); };
  for (std::uint64_t at = 0; at < n; ++at) {
    for (int i = 0; i < 16; ++i) {
      switch (random() % 4) {
        case 0: a[i] = any(), b[i] = any(), c[i] = any(); break;
        // What the rounding of a product left.
        case 1: a[i] = any(), b[i] = odd(1 << 23), c[i] = -a[i] * b[i]; break;
        // The product has 25 or 26 bits, so half of them lie in the middle between two floats. c decides, and is lost in a
        // double.
        case 2: a[i] = odd(4096), b[i] = odd(4096), c[i] = power(-60, -20); break;
        // The same for subnormal results: the product is 2^-150 less a little, and c a multiple of 2^-149.
        default:
          a[i] = std::ldexp(8388609.0f, -98), b[i] = std::ldexp(8388607.0f, -98);
          c[i] = std::ldexp(odd(1 << 22), -149) * (random() % 2 == 0 ? 1.0f : -1.0f);
          break;
      }
    }
    store(d, fma(load(a), load(b), load(c)));
    for (int i = 0; i < 16; ++i) {
      const float expected = exact_fma(a[i], b[i], c[i]);
      n_wrong += !is_same(d[i], expected);
      n_wrong += !is_same(std::fma(a[i], b[i], c[i]), expected);
    }
  }
  return n_wrong;
}

int check_f16() {
  int n_wrong = 0;
  for (std::uint32_t h = 0; h < 65536; ++h)
    n_wrong += !is_same(f16_to_float(static_cast<std::uint16_t>(h)), f16_to_f32(static_cast<std::uint16_t>(h)));
  return n_wrong;
}

int check_integers(std::mt19937& random) {
  int n_wrong = 0;
  for (int at = 0; at < 1000; ++at) {
    std::uint32_t a[16], by[16], shifted[16];
    for (int i = 0; i < 16; ++i) a[i] = static_cast<std::uint32_t>(random()), by[i] = random() % 32;
    store(static_cast<void*>(shifted), shift_left(load_ints(a), load_ints(by)));
    std::int16_t pairs[16], sums[8];
    std::memcpy(pairs, a, sizeof pairs);
    add_neighbours(pairs, sums);
    for (int i = 0; i < 16; ++i) n_wrong += shifted[i] != a[i] << by[i];
    for (int i = 0; i < 8; ++i) n_wrong += sums[i] != static_cast<std::int16_t>(pairs[2 * i] + pairs[2 * i + 1]);
  }
  return n_wrong;
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

int main() {
  using namespace zinc_rt;
  std::mt19937 random(7);
  const int n_fma = cpu_simd::check_fma(random, 200'000), n_f16 = cpu_simd::check_f16();
  const int n_integers = cpu_simd::check_integers(random);
  print_out("wrong: fma {} of 6,400,000, f16 {} of 65,536, integers {} of 24,000\n", n_fma, n_f16, n_integers);
  return n_fma + n_f16 + n_integers == 0 && output_status() ? 0 : 1;
}
