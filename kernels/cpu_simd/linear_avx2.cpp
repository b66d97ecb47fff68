#include "kernels/cpu_simd/dots_avx2.h"
// The dots header comes first, because the body uses its names.
#include "kernels/cpu_simd/linear_body.h"
#include "kernels/cpu_simd/units.h"

namespace zinc_rt::cpu_simd {

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

bool linear_rows_avx2(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end) {
  return panel_linear(args, begin, end);
}

}  // namespace zinc_rt::cpu_simd
