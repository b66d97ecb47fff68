// Defines the row functions for AVX-512. Everything but the table is static, because it is compiled for AVX-512, and
// code for other processors must not use a copy of it.
#include "kernels/cpu_simd/lanes_avx512.h"
#include "kernels/cpu_simd/units.h"
// The lanes header comes first, because the files after it use its names.
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
