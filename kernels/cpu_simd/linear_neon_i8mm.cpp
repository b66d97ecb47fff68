#include "base/platform/processor_access.h"
#include "kernels/cpu_simd/dots_neon.h"
// The dots header comes first, because the body uses its names.
#include "kernels/cpu_simd/linear_body.h"
#include "kernels/cpu_simd/units.h"

namespace zinc_rt::cpu_simd {

bool has_neon_i8mm() {
  return has_neon_dotprod() && has_arm_int8_matrices();
}

bool linear_rows_neon_i8mm(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end) {
  return panel_linear(args, begin, end);
}

}  // namespace zinc_rt::cpu_simd
