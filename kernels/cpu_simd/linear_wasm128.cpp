#include "kernels/cpu_simd/dots_wasm128.h"
// The dots header comes first, because the body uses its names.
#include "kernels/cpu_simd/linear_body.h"
#include "kernels/cpu_simd/units.h"

namespace zinc_rt::cpu_simd {

bool has_wasm128() {
  return true;  // the module is compiled for it, and is not loaded without it
}

bool linear_rows_wasm128(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end) {
  return panel_linear(args, begin, end);
}

}  // namespace zinc_rt::cpu_simd
