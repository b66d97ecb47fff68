// GLU: y = act(gate) * up, value by value. y may be the same memory as gate. Grid: (rows, parts of a row).
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void glu(const __grid_constant__ OpArgs args) {
  glu_rows(args, args.constants<push::Glu>().act);
}
