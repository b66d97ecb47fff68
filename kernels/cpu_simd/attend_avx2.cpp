// Defines the attention kernel for AVX2. Everything but the entry is static, because it is compiled for AVX2, and code
// for other processors must not use a copy of it.
#include "kernels/cpu_simd/lanes_avx2.h"
#include "kernels/cpu_simd/units.h"
// The lanes header must come first, because the files after it use its names.
#include "kernels/cpu_simd/attend_body.h"

namespace zinc_rt::cpu_simd {

void attend_avx2(const cpu::AttendTile& tile) {
  attend_tile(tile);
}

}  // namespace zinc_rt::cpu_simd
