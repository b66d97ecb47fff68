// Products by digits of sub-scales, one image a weight format (ZRT_WEIGHTS): of 9 to 64 rows of x in the shapes of
// kDigitsShapes, and of more.
#include "kernels/sm_90/linear_digits_tile.cuh"

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
static_assert(kDigitsTileThreads == 384);
extern "C" __global__ void __launch_bounds__(384, 1) linear_digits_128(const __grid_constant__ LinearArgs args) {
#if defined(ZRT_HAS_WGMMA)
  linear_digits_tile<kFormat>(args);
  end_product(args);
#endif
}
