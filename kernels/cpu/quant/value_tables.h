// Defines the value tables of 4-bit formats whose codes are indices into a table.
#pragma once

#include <stdint.h>

namespace zinc_rt {

// These are the values of IQ4_NL and IQ4_XS, which are denser near zero.
constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
// These are the values of MXFP4. Each is twice the value of a 4-bit float of one sign, two exponent and one mantissa
// bit.
constexpr int8_t kFp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace zinc_rt
