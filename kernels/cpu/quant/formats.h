// Declares the rows of the table of weight formats. The file of a format's name defines its row.
#pragma once

#include "kernels/cpu/quant/quant.h"

namespace zinc_rt::cpu {

extern const QuantFormat kFormatF32;
extern const QuantFormat kFormatF16;
extern const QuantFormat kFormatBF16;
extern const QuantFormat kFormatQ4_0;
extern const QuantFormat kFormatQ4_1;
extern const QuantFormat kFormatQ5_0;
extern const QuantFormat kFormatQ5_1;
extern const QuantFormat kFormatQ8_0;
extern const QuantFormat kFormatQ2_K;
extern const QuantFormat kFormatQ3_K;
extern const QuantFormat kFormatQ4_K;
extern const QuantFormat kFormatQ5_K;
extern const QuantFormat kFormatQ6_K;
extern const QuantFormat kFormatIQ4_NL;
extern const QuantFormat kFormatIQ4_XS;
extern const QuantFormat kFormatMXFP4;
extern const QuantFormat kFormatFixed16;

}  // namespace zinc_rt::cpu
