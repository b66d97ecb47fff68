// CONCAT: y[t][g] = a[t][g], then b[t][g], where each row t of y has `groups` groups of `width` values, of which a has
// the first `first`. Grid: (rows, parts of a row).
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void concat(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  if (blockIdx.x >= args.dim(symbol::Rows::rows)) return;
  const auto c = args.constants<push::Concat>();
  const uint32_t rest = c.width - c.first;
  const uint64_t row = static_cast<uint64_t>(blockIdx.x) * c.groups;
  const float *a = args.buffer<const float>(binding::Concat::a) + row * c.first,
              *b = args.buffer<const float>(binding::Concat::b) + row * rest;
  float* y = args.buffer<float>(binding::Concat::y) + row * c.width;
  for (uint32_t i = blockIdx.y * blockDim.x + threadIdx.x; i < c.groups * c.width; i += gridDim.y * blockDim.x) {
    const uint32_t g = i / c.width, j = i % c.width;
    y[i] = j < c.first ? a[g * c.first + j] : b[g * rest + j - c.first];
  }
}
