// The row functions for AVX-512. Everything but the table is static: it is compiled for AVX-512, and no copy of it
// may serve code that is not.
#include "kernels/cpu_simd/lanes_avx512.h"
#include "kernels/cpu_simd/units.h"
// The lanes header comes first: what follows is written in its names.
#include "kernels/cpu_simd/rows_body.h"
#include "kernels/cpu_simd/ssm_body.h"

namespace zinc_rt::cpu_simd {

const cpu::RowKernels kRowsAvx512{rms_norm, quantize, rope, glu, delta_step, conv_step, float_linear_avx512};
const cpu::RowKernels kRowsAvx512Bf16{
    rms_norm,           quantize, rope, glu, delta_step, conv_step, float_linear_avx512_bf16, rounds_x_avx512_bf16,
    round_x_avx512_bf16};
const cpu::RowKernels kRowsAmxBf16{
    rms_norm, quantize, rope, glu, delta_step, conv_step, float_linear_amx_bf16, rounds_x_amx_bf16, round_x_amx_bf16};

}  // namespace zinc_rt::cpu_simd
