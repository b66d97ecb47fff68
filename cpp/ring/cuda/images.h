// The compiled kernels, as .zrt files that lie in the program (docs/abi.md); CMake writes the list.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace zinc_rt::ring {

struct CudaImage {
  std::string_view name;  // of the source; for the products "linear." and the weight's type
  std::span<const std::byte> zrt;
};
std::span<const CudaImage> cuda_images();

}  // namespace zinc_rt::ring
