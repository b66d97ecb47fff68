// MOE_SWIGLU: GLU of the rows of the chosen experts.
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void moe_swiglu(const __grid_constant__ OpArgs args) {
  glu_rows(args, args.constants<push::MoeSwiglu>().act);
}
