// Defines the row functions for AVX2. Everything but the table is static, because it is compiled for AVX2, and code for
// other processors must not use a copy of it.
#include "kernels/cpu_simd/lanes_avx2.h"
#include "kernels/cpu_simd/units.h"
// The lanes header comes first, because the files after it use its names.
#include "kernels/cpu_simd/rows_body.h"
#include "kernels/cpu_simd/ssm_body.h"

namespace zinc_rt::cpu_simd {

const cpu::RowKernels kRowsAvx2{rms_norm, quantize, rope, glu, delta_step, conv_step, float_linear_avx2};

}  // namespace zinc_rt::cpu_simd
