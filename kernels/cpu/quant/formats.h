// Lists the weight formats and declares the rows of their table. The file of a format's name defines its row.
#pragma once

#include "kernels/cpu/quant/quant.h"

// Calls X(name) for each format, in the order of DType. A new format is added here.
// clang-format off
#define ZRT_WEIGHT_FORMATS(X) \
  X(F32) X(F16) X(BF16) X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(Q2_K) X(Q3_K) X(Q4_K) X(Q5_K) X(Q6_K) \
  X(IQ4_NL) X(IQ4_XS) X(MXFP4) X(Fixed16) X(NVFP4) X(IQ3_S) X(IQ3_XXS) X(IQ2_S) X(IQ2_XS) X(IQ2_XXS) \
  X(TQ2_0) X(TQ1_0) X(IQ1_S) X(IQ1_M)
// clang-format on

namespace zinc_rt::cpu {

#define ZRT_DECLARE_FORMAT(name) extern const QuantFormat kFormat##name;
ZRT_WEIGHT_FORMATS(ZRT_DECLARE_FORMAT)
#undef ZRT_DECLARE_FORMAT

}  // namespace zinc_rt::cpu
