#include "kernels/cpu_simd/dots_neon.h"
// The dots header comes first, because the body uses its names.
#include "kernels/cpu_simd/linear_body.h"
#include "kernels/cpu_simd/units.h"

namespace zinc_rt::cpu_simd {

bool has_neon() {
  return true;  // every 64-bit ARM processor has NEON
}

bool linear_rows_neon(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end) {
  return panel_linear(args, begin, end);
}

}  // namespace zinc_rt::cpu_simd
