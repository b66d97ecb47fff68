// LINEAR for several rows of activations at once, on quantized weights: 16 weight rows are unpacked group by group into
// a panel (lane = row, four consecutive k in each 32-bit lane), over which all activation rows then sweep. Weights are
// thus read and unpacked once a step, and no sum crosses lanes.
//
// The bits are those of kernels/cpu/quant: integer dots are exact in any order, and each lane does the format's float
// operations in the reference's order (docs/arithmetic.md, rule 3).
// Thread rule: pure functions.
#pragma once

#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu_simd {

// Rows [begin, end) of args.w times all rows of args.x; false, and nothing done, for what the reference does as well:
// types that are not here, or fewer than kFewestRows rows of x.
constexpr std::uint32_t kFewestRows = 3;
bool linear_panel_avx2(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);

// Whether the processor has AVX2, FMA and F16C and the system saves their registers.
bool has_avx2();

}  // namespace zinc_rt::cpu_simd
