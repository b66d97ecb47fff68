#include <cpuid.h>

#include "kernels/cpu_simd/dots_avx2.h"
// The dots header comes first, because the body uses its names.
#include "kernels/cpu_simd/linear_body.h"
#include "kernels/cpu_simd/units.h"

namespace zinc_rt::cpu_simd {

bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;  // CPUID leaf 7, subleaf 1: bit 4 of eax is AVX-VNNI
  return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}

bool linear_rows_avx_vnni(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end) {
  return panel_linear(args, begin, end);
}

}  // namespace zinc_rt::cpu_simd
