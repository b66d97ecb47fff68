// What a unit compiled for an instruction set may have: functions of its own, in place at each call.
#pragma once

#define ZRT_SIMD static inline __attribute__((always_inline))
