// Attention over pages for AVX2. Everything but the entry is static: it is compiled for AVX2, and no copy of it may
// serve code that is not.
#include "kernels/cpu_simd/lanes_avx2.h"
#include "kernels/cpu_simd/units.h"
// The lanes header comes first: what follows is written in its names.
#include "kernels/cpu_simd/attend_body.h"

namespace zinc_rt::cpu_simd {

void attend_avx2(const cpu::AttendTile& tile) {
  attend_tile(tile);
}

}  // namespace zinc_rt::cpu_simd
