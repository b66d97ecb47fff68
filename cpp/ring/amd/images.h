// The compiled kernels of the AMD tiers: code objects that are embedded in the program. CMake generates the list.
#pragma once

#include <span>
#include <string_view>

#include "ring/diagnostics.h"

namespace zinc_rt::ring {

std::span<const CodeImage> amd_images();
std::string_view amd_code();  // one line for display: the targets of the images, and the compiler

}  // namespace zinc_rt::ring
