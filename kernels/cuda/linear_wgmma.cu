// The products of arithmetic `fast` on tensor cores (linear_wgmma.cuh), compiled into one image per weight format
// (ZRT_WEIGHTS). There is one kernel for each shape of kWgmmaShapes; its name has the rows of W and of x of a
// workgroup's block.
#include "kernels/cuda/linear_wgmma.cuh"

using namespace zinc_rt::cuda;

[[maybe_unused]] constexpr Format kFormat = ZRT_WEIGHTS;
static_assert(wgmma_threads(kWgmmaShapes[0]) == 640 && wgmma_threads(kWgmmaShapes[1]) == 384);

extern "C" __global__ void __launch_bounds__(640, 1) linear_wgmma_256_128(const __grid_constant__ WgmmaArgs args) {
#if defined(ZRT_HAS_WGMMA)
  linear_wgmma<kFormat, 4, 128>(args);
  end_product(args.linear);
#endif
}
extern "C" __global__ void __launch_bounds__(384, 1) linear_wgmma_128_128(const __grid_constant__ WgmmaArgs args) {
#if defined(ZRT_HAS_WGMMA)
  linear_wgmma<kFormat, 2, 128>(args);
  end_product(args.linear);
#endif
}
extern "C" __global__ void __launch_bounds__(384, 2) linear_wgmma_128_64(const __grid_constant__ WgmmaArgs args) {
#if defined(ZRT_HAS_WGMMA)
  linear_wgmma<kFormat, 2, 64>(args);
  end_product(args.linear);
#endif
}
