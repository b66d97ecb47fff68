// The compiled kernels as .zrt files embedded in the program (docs/abi.md). CMake writes the list.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace zinc_rt::ring {

// The beginning of an image in a build without device code (ZRT_CUDA); the image's name and a zero follow. NVIDIA's
// driver refuses such an image. The driver in tests_cpp/cuda_sim accepts it, because it has the kernels itself.
inline constexpr std::string_view kStandIn = "zinc_rt without device code: ";

// A .zrt file with the kernels of one source file, compiled.
struct CudaImage {
  // such as "rms_norm", its source file; for products with the weights' type, such as "linear.q4_k"
  std::string_view name;
  std::span<const std::byte> zrt;
};
std::span<const CudaImage> cuda_images();

// Returns a text for users (`zinc-rt tiers`) that names the devices that the images have code for, and the compiler.
std::string_view cuda_code();

}  // namespace zinc_rt::ring
