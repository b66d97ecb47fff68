// Defines LINEAR on float weights for AVX-512. Everything but the entry is static, because it is compiled for AVX-512,
// and code for other processors must not use a copy of it.
#include "kernels/cpu_simd/lanes_avx512.h"
#include "kernels/cpu_simd/units.h"
// The lanes header comes first, because the files after it use its names.
#include "kernels/cpu_simd/float_linear_body.h"

namespace zinc_rt::cpu_simd {

void float_linear_avx512(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end) {
  float_linear(args, begin, end);
}

}  // namespace zinc_rt::cpu_simd
