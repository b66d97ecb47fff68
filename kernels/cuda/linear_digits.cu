// Products by digits of sub-scales (linear_digits.cuh), compiled into one image per weight format (ZRT_WEIGHTS). For 2
// to 64 rows of x there is one kernel per shape of kDigitsShapes; linear_digits_GxN computes N rows of x with G groups
// per stage. linear_digits_128 is for more rows. For FIXED16 only the shapes for which shared memory suffices have a
// body; linear_fixed.cu has its kernels for many rows.
#include "kernels/cuda/linear_digits_tile.cuh"

using namespace zinc_rt::cuda;

[[maybe_unused]] constexpr Format kFormat = ZRT_WEIGHTS;
template <int kIndex>
constexpr bool kHasShape = has_digits_stages(kDigitsShapes[kIndex], kActOf<kFormat>, Traits<kFormat>::kBytes);
// Whether the shapes first to end - 1 all have that many threads; the kernels' __launch_bounds__ must agree.
constexpr bool have_threads(int first, int end, uint32_t threads) {
  for (int i = first; i < end; ++i)
    if (digits_threads(kDigitsShapes[i]) != threads) return false;
  return true;
}
static_assert(have_threads(0, 5, 768) && have_threads(5, 6, 640) && have_threads(6, 7, 768) && have_threads(7, 9, 640));

extern "C" __global__ void __launch_bounds__(768, 1) linear_digits_8(const __grid_constant__ LinearArgs args) {
#if defined(ZRT_HAS_WGMMA)
  if constexpr (kHasShape<0>) linear_digits<kFormat, 0>(args);
  end_product(args);
#endif
}
extern "C" __global__ void __launch_bounds__(768, 1) linear_digits_2x8(const __grid_constant__ LinearArgs args) {
#if defined(ZRT_HAS_WGMMA)
  if constexpr (kHasShape<1>) linear_digits<kFormat, 1>(args);
  end_product(args);
#endif
}
extern "C" __global__ void __launch_bounds__(768, 1) linear_digits_4x8(const __grid_constant__ LinearArgs args) {
#if defined(ZRT_HAS_WGMMA)
  if constexpr (kHasShape<2>) linear_digits<kFormat, 2>(args);
  end_product(args);
#endif
}
extern "C" __global__ void __launch_bounds__(768, 1) linear_digits_16(const __grid_constant__ LinearArgs args) {
#if defined(ZRT_HAS_WGMMA)
  if constexpr (kHasShape<3>) linear_digits<kFormat, 3>(args);
  end_product(args);
#endif
}
extern "C" __global__ void __launch_bounds__(768, 1) linear_digits_2x16(const __grid_constant__ LinearArgs args) {
#if defined(ZRT_HAS_WGMMA)
  if constexpr (kHasShape<4>) linear_digits<kFormat, 4>(args);
  end_product(args);
#endif
}
extern "C" __global__ void __launch_bounds__(640, 1) linear_digits_4x16(const __grid_constant__ LinearArgs args) {
#if defined(ZRT_HAS_WGMMA)
  if constexpr (kHasShape<5>) linear_digits<kFormat, 5>(args);
  end_product(args);
#endif
}
extern "C" __global__ void __launch_bounds__(768, 1) linear_digits_32(const __grid_constant__ LinearArgs args) {
#if defined(ZRT_HAS_WGMMA)
  if constexpr (kHasShape<6>) linear_digits<kFormat, 6>(args);
  end_product(args);
#endif
}
extern "C" __global__ void __launch_bounds__(640, 1) linear_digits_2x32(const __grid_constant__ LinearArgs args) {
#if defined(ZRT_HAS_WGMMA)
  if constexpr (kHasShape<7>) linear_digits<kFormat, 7>(args);
  end_product(args);
#endif
}
extern "C" __global__ void __launch_bounds__(640, 1) linear_digits_64(const __grid_constant__ LinearArgs args) {
#if defined(ZRT_HAS_WGMMA)
  if constexpr (kHasShape<8>) linear_digits<kFormat, 8>(args);
  end_product(args);
#endif
}
static_assert(kDigitsTileThreads == 384);
extern "C" __global__ void __launch_bounds__(384, 1) linear_digits_128(const __grid_constant__ LinearArgs args) {
#if defined(ZRT_HAS_WGMMA)
  if constexpr (kFormat != kFixed16) linear_digits_tile<kFormat>(args);
  end_product(args);
#endif
}
