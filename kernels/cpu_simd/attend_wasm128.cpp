// Defines the attention kernel for WebAssembly. Everything but the entry is static, as in the units of other sets.
#include "kernels/cpu_simd/lanes_wasm128.h"
#include "kernels/cpu_simd/units.h"
// The lanes header comes first, because the files after it use its names.
#include "kernels/cpu_simd/attend_body.h"

namespace zinc_rt::cpu_simd {

void attend_wasm128(const cpu::AttendTile& tile) {
  attend_tile(tile);
}

}  // namespace zinc_rt::cpu_simd
