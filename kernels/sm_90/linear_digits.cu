// Products of 9 to 64 rows of x by digits of sub-scales, one image a weight format (ZRT_WEIGHTS), in the shapes of
// kDigitsShapes.
#include "kernels/sm_90/linear_digits.cuh"

using namespace zinc_rt::cuda;

[[maybe_unused]] constexpr Format kFormat = static_cast<Format>(ZRT_WEIGHTS);
static_assert(digits_threads(kDigitsShapes[0]) == 768 && digits_threads(kDigitsShapes[1]) == 768 &&
              digits_threads(kDigitsShapes[2]) == 640);

extern "C" __global__ void __launch_bounds__(768, 1) linear_digits_16(const __grid_constant__ LinearArgs args) {
#if defined(ZRT_HAS_WGMMA)
  linear_digits<kFormat, 16, 4>(args);
  end_product(args);
#endif
}
extern "C" __global__ void __launch_bounds__(768, 1) linear_digits_32(const __grid_constant__ LinearArgs args) {
#if defined(ZRT_HAS_WGMMA)
  linear_digits<kFormat, 32, 4>(args);
  end_product(args);
#endif
}
extern "C" __global__ void __launch_bounds__(640, 1) linear_digits_64(const __grid_constant__ LinearArgs args) {
#if defined(ZRT_HAS_WGMMA)
  linear_digits<kFormat, 64, 3>(args);
  end_product(args);
#endif
}
