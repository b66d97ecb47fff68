// Attention over pages for AVX2 with VNNI on 256 bits: that of AVX2, but for products of integers, which are added as
// they are made. Everything but the entry is static, as in the other sets' units.
#include "kernels/cpu_simd/lanes_avx2.h"
#include "kernels/cpu_simd/units.h"
// The lanes header comes first: what follows is written in its names.
#include "kernels/cpu_simd/attend_body.h"

namespace zinc_rt::cpu_simd {

void attend_avx_vnni(const cpu::AttendTile& tile) {
  attend_tile(tile);
}

}  // namespace zinc_rt::cpu_simd
