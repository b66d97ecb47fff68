// COPY_ROWS: rows[to[i]] = rows[from[i]] for each i. Words are copied, so the bits stay the same whatever the type.
// Grid: (pairs i, parts of a row).
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void copy_rows(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  if (blockIdx.x >= args.dim(symbol::Row::rows)) return;
  const uint64_t w = args.dim(symbol::Row::width);
  auto* rows = args.buffer<uint32_t>(binding::CopyRows::rows);
  const uint32_t* from =
      rows + static_cast<uint64_t>(args.buffer<const int32_t>(binding::CopyRows::from)[blockIdx.x]) * w;
  uint32_t* to = rows + static_cast<uint64_t>(args.buffer<const int32_t>(binding::CopyRows::to)[blockIdx.x]) * w;
  for (uint64_t i = blockIdx.y * blockDim.x + threadIdx.x; i < w; i += gridDim.y * blockDim.x) to[i] = from[i];
}
