// The row functions for AVX2. Everything but the table is static: it is compiled for AVX2, and no copy of it may serve
// code that is not.
#include "kernels/cpu_simd/lanes_avx2.h"
#include "kernels/cpu_simd/units.h"
// The lanes header comes first: what follows is written in its names.
#include "kernels/cpu_simd/rows_body.h"
#include "kernels/cpu_simd/ssm_body.h"

namespace zinc_rt::cpu_simd {

const cpu::RowKernels kRowsAvx2{rms_norm, quantize, rope, glu, delta_step, conv_step, float_linear_avx2};

}  // namespace zinc_rt::cpu_simd
