#include "kernels/cpu_simd/dots_avx2.h"
#include "kernels/cpu_simd/units.h"
// The dots header must come first, because peak_body.h uses its names.
#include "kernels/cpu_simd/peak_body.h"

namespace zinc_rt::cpu_simd {

std::uint64_t int8_products_avx2(std::uint64_t rounds) {
  return int8_products(rounds);
}

}  // namespace zinc_rt::cpu_simd
