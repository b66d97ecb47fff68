// Defines the row functions for WebAssembly. Everything but the table is static, as in the units of other sets.
#include "kernels/cpu_simd/lanes_wasm128.h"
#include "kernels/cpu_simd/units.h"
// The lanes header comes first, because the files after it use its names.
#include "kernels/cpu_simd/rows_body.h"
#include "kernels/cpu_simd/ssm_body.h"

namespace zinc_rt::cpu_simd {

const cpu::RowKernels kRowsWasm128{rms_norm, quantize, rope, glu, delta_step, conv_step, float_linear_wasm128};

}  // namespace zinc_rt::cpu_simd
