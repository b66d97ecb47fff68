// Attention over pages for AVX2 with VNNI on 256 bits. It differs from AVX2's only in products of integers, which VNNI
// adds in the same instruction. Everything but the entry is static, as in the units of other sets.
#include "kernels/cpu_simd/lanes_avx2.h"
#include "kernels/cpu_simd/units.h"
// The lanes header comes first, because the files after it use its names.
#include "kernels/cpu_simd/attend_body.h"

namespace zinc_rt::cpu_simd {

void attend_avx_vnni(const cpu::AttendTile& tile) {
  attend_tile(tile);
}

}  // namespace zinc_rt::cpu_simd
