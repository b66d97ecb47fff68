// Attention over pages for NEON. Everything but the entry is static, as in the other sets' units.
#include "kernels/cpu_simd/lanes_neon.h"
#include "kernels/cpu_simd/units.h"
// The lanes header comes first: what follows is written in its names.
#include "kernels/cpu_simd/attend_body.h"

namespace zinc_rt::cpu_simd {

void attend_neon(const cpu::AttendTile& tile) {
  attend_tile(tile);
}

}  // namespace zinc_rt::cpu_simd
