// Measures an upper bound for the speed of LINEAR's tiles: runs their multiply-adds of bytes without any other work.
// peak_<isa>.cpp includes this after its dots_<isa>.h.
#pragma once

#include <utility>

namespace zinc_rt::cpu_simd {
namespace {

// Returns the argument. The compiler cannot know that it is unchanged, and so cannot remove the multiply-adds as
// repeated.
ZRT_SIMD Bytes others(Bytes codes) {
  asm("" : "+v"(codes));
  return codes;
}

ZRT_SIMD void want(Bytes sum) {
  asm volatile("" : : "v"(sum));
}

// Runs one chain of dependent multiply-adds per kChain, `rounds` times. The number of chains is large enough to hide
// the latency of a multiply-add, and small enough for the registers.
template <int... kChain>
ZRT_SIMD std::uint64_t int8_products(std::uint64_t rounds, std::integer_sequence<int, kChain...> chains) {
  static constexpr std::int8_t kOnes[4] = {1, 1, 1, 1};
  const Bytes x = every_four(kOnes);
  Bytes codes = x, sums[] = {(static_cast<void>(kChain), x)...};
  for (std::uint64_t round = 0; round < rounds; ++round)
    ((codes = others(codes), sums[kChain] = add_products<false, false>(sums[kChain], codes, x)), ...);
  (want(sums[kChain]), ...);
  return rounds * chains.size() * sizeof(Bytes);
}
std::uint64_t int8_products(std::uint64_t rounds) {
  return int8_products(rounds, std::make_integer_sequence<int, 12>{});
}

}  // namespace
}  // namespace zinc_rt::cpu_simd
