// The version of the library.
#pragma once

namespace zinc_rt {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace zinc_rt
