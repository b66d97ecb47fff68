// MOE_SWIGLU: y = act(gate) * up for the rows that the chosen experts' gate and up products wrote. Grid: (rows, parts
// of a row).
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void moe_swiglu(const __grid_constant__ OpArgs args) {
  glu_rows(args, args.constants<push::MoeSwiglu>().act);
}
