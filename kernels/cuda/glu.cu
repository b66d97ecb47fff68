// GLU: y = act(gate) * up; y may be gate.
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void glu(const __grid_constant__ OpArgs args) {
  glu_rows(args, args.constants<push::Glu>().act);
}
