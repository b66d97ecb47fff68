// Defines the versions of the library and of its arithmetic.
#pragma once

namespace zinc_rt {

inline constexpr const char* kVersion = "0.1.0";

// This is the version of the arithmetic contract (docs/arithmetic.md). It rises when the same model and text give other
// bits in arithmetic `exact` than before.
inline constexpr unsigned kArithmeticVersion = 3;

}  // namespace zinc_rt
