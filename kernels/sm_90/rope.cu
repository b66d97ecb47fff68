// ROPE: rotates pairs by the angles of a token's position; a position outside the table gives NaN. A workgroup a row.
// Symbols: n, d, p.
#include "kernels/sm_90/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void rope(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const uint32_t t = blockIdx.x, d = args.dim(1);
  if (t >= args.dim(0)) return;
  const auto c = args.constants<push::Rope>();
  const auto pos = static_cast<uint32_t>(args.buffer<const int32_t>(1)[t]);
  const float* table = pos < args.dim(2) ? args.buffer<const float>(2) + static_cast<uint64_t>(pos) * c.n_rot : nullptr;
  const uint64_t at = static_cast<uint64_t>(t) * d;
  rope_heads(args.buffer<const float>(0) + at, table, args.buffer<float>(3) + at, d / c.head_dim, c.head_dim, c.n_rot,
             c.neox != 0);
}
