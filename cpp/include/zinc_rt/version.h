// Defines the versions of the library and of its arithmetic.
#pragma once

namespace zinc_rt {

inline constexpr const char* kVersion = "0.1.0";

// The version of the arithmetic contract (docs/arithmetic.md). It is raised when, in arithmetic `exact`, the bits of
// the results for the same model and text change.
inline constexpr unsigned kArithmeticVersion = 3;

}  // namespace zinc_rt
