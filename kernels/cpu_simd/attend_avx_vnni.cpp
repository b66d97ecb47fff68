// Defines the attention kernel for AVX2 with VNNI on 256 bits. It differs from the AVX2 kernel only in products of
// integers, which VNNI adds in the same instruction. Everything but the entry is static, because code for other
// processors must not use a copy of it.
#include "kernels/cpu_simd/lanes_avx2.h"
#include "kernels/cpu_simd/units.h"
// The lanes header comes first, because the files after it use its names.
#include "kernels/cpu_simd/attend_body.h"

namespace zinc_rt::cpu_simd {

void attend_avx_vnni(const cpu::AttendTile& tile) {
  attend_tile(tile);
}

}  // namespace zinc_rt::cpu_simd
