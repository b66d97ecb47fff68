// Defines the attention kernel for AVX-512. Everything but the entry is static, because it is compiled for AVX-512, and
// code for other processors must not use a copy of it.
#include "kernels/cpu_simd/lanes_avx512.h"
#include "kernels/cpu_simd/units.h"
// The lanes header comes first, because the files after it use its names.
#include "kernels/cpu_simd/attend_body.h"

namespace zinc_rt::cpu_simd {

void attend_avx512(const cpu::AttendTile& tile) {
  attend_tile(tile);
}

}  // namespace zinc_rt::cpu_simd
