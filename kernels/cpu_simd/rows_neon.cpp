// Defines the row functions for NEON. Everything but the table is static, because code for other processors must not
// use a copy of it.
#include "kernels/cpu_simd/lanes_neon.h"
#include "kernels/cpu_simd/units.h"
// The lanes header comes first, because the files after it use its names.
#include "kernels/cpu_simd/rows_body.h"
#include "kernels/cpu_simd/ssm_body.h"

namespace zinc_rt::cpu_simd {

const cpu::RowKernels kRowsNeon{rms_norm, quantize, rope, glu, delta_step, conv_step, float_linear_neon};

}  // namespace zinc_rt::cpu_simd
