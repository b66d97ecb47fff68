// Defines the attention kernel for NEON. Everything but the entry is static, because code for other processors must not
// use a copy of it.
#include "kernels/cpu_simd/lanes_neon.h"
#include "kernels/cpu_simd/units.h"
// The lanes header comes first, because the files after it use its names.
#include "kernels/cpu_simd/attend_body.h"

namespace zinc_rt::cpu_simd {

void attend_neon(const cpu::AttendTile& tile) {
  attend_tile(tile);
}

}  // namespace zinc_rt::cpu_simd
