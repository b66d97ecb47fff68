// The compiled kernels: code objects embedded in the program. CMake writes the list.
#pragma once

#include <span>
#include <string_view>

#include "ring/diagnostics.h"

namespace zinc_rt::ring {

std::span<const CodeImage> amd_images();
std::string_view amd_code();  // for people: the targets that they are for, and the compiler

}  // namespace zinc_rt::ring
