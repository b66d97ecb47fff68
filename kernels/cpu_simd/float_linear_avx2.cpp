// LINEAR on float weights for AVX2. Everything but the entry is static: it is compiled for AVX2, and no copy of it may
// serve code that is not.
#include "kernels/cpu_simd/lanes_avx2.h"
#include "kernels/cpu_simd/units.h"
// The lanes header comes first: what follows is written in its names.
#include "kernels/cpu_simd/float_linear_body.h"

namespace zinc_rt::cpu_simd {

void float_linear_avx2(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end) {
  float_linear(args, begin, end);
}

}  // namespace zinc_rt::cpu_simd
