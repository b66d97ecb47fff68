// ROPE: rotates pairs of values of each head by the angles of the token's position. If the position is outside the
// table of angles, the row becomes NaN. Grid: one workgroup per row.
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void rope(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const uint32_t t = blockIdx.x, d = args.dim(symbol::Rope::d);
  if (t >= args.dim(symbol::Rope::rows)) return;
  const auto c = args.constants<push::Rope>();
  const auto pos = static_cast<uint32_t>(args.buffer<const int32_t>(binding::Rope::pos)[t]);
  const float* table = pos < args.dim(symbol::Rope::p)
                           ? args.buffer<const float>(binding::Rope::table) + static_cast<uint64_t>(pos) * c.n_rot
                           : nullptr;
  const uint64_t at = static_cast<uint64_t>(t) * d;
  rope_heads(args.buffer<const float>(binding::Rope::x) + at, table, args.buffer<float>(binding::Rope::y) + at,
             d / c.head_dim, c.head_dim, c.n_rot, c.neox != 0);
}
