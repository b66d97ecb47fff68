// The compiled kernels, code objects that lie in the program; CMake writes the list.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kernel/zrt_file.h"

namespace zinc_rt::ring {

struct AmdImage {
  std::string_view name;  // of the source
  kernel::Target target;
  std::span<const std::byte> elf;
};
std::span<const AmdImage> amd_images();
std::string_view amd_code();  // for people: the targets that they are for, and the compiler

}  // namespace zinc_rt::ring
