// Defines LINEAR on float weights for WebAssembly. Everything but the entry is static, as in the units of other sets.
#include "kernels/cpu_simd/lanes_wasm128.h"
#include "kernels/cpu_simd/units.h"
// The lanes header comes first, because the files after it use its names.
#include "kernels/cpu_simd/float_linear_body.h"

namespace zinc_rt::cpu_simd {

void float_linear_wasm128(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end) {
  float_linear(args, begin, end);
}

}  // namespace zinc_rt::cpu_simd
