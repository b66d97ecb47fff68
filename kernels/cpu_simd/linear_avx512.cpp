#include "kernels/cpu_simd/dots_avx512.h"
// The dots header comes first, because the body uses its names.
#include "kernels/cpu_simd/linear_body.h"
#include "kernels/cpu_simd/units.h"

namespace zinc_rt::cpu_simd {

bool has_avx512_vnni() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}

bool linear_rows_avx512_vnni(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end) {
  return panel_linear(args, begin, end);
}

}  // namespace zinc_rt::cpu_simd
