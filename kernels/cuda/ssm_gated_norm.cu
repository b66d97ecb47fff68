// SSM_GATED_NORM: y = RMS_NORM(x) * silu(z), or with gate_first y = RMS_NORM(x * silu(z)). The norm is over groups of
// `group` values. y may be the same memory as x. The order of sums is that of kernels/cpu/rms_norm.cpp.
// Grid: one workgroup per row. A group has parts of up to 256 values. A half warp handles every n-th part, with n the
// number of half warps, and keeps the last one in registers.
// Shared memory: a float per part (its sum of squares), then one per group (its factor).
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/norm_args.h"

using namespace zinc_rt::cuda;

extern "C" __global__ void ssm_gated_norm(const __grid_constant__ OpArgs args) {
  ZRT_DYNAMIC_SHARED(float, shared);
  wait_for_inputs();
  let_next_start();
  if (blockIdx.x >= args.dim(symbol::GatedNorm::rows)) return;
  const auto c = args.constants<push::SsmGatedNorm>();
  const uint32_t d = args.dim(symbol::GatedNorm::d), n_groups = d / c.group, of_group = (c.group + 255) / 256,
                 n_parts = n_groups * of_group, step = blockDim.x / 16, half_warp = threadIdx.x / 16,
                 l = threadIdx.x % 16;
  const bool has_own_weights = args.symbols[symbol::GatedNorm::w_groups] != 1, gate_first = c.gate_first != 0;
  const uint64_t row = static_cast<uint64_t>(blockIdx.x) * d;
  const float *x = args.buffer<const float>(binding::SsmGatedNorm::x) + row,
              *z = args.buffer<const float>(binding::SsmGatedNorm::z) + row,
              *w = args.buffer<const float>(binding::SsmGatedNorm::w);
  float *y = args.buffer<float>(binding::SsmGatedNorm::y) + row, *factors = shared + n_parts;
  // Where a part begins in its group and in the row.
  const auto at_group = [&](uint32_t part) { return part % of_group * 256; };
  const auto at_row = [&](uint32_t part) { return part / of_group * c.group + at_group(part); };
  const auto size_of = [&](uint32_t part) { return min(256u, c.group - at_group(part)); };

  LaneOfGroup of, gate;
  uint32_t mine = 0;
  for (uint32_t part = half_warp; part < n_parts; part += step) {
    mine = part;
    of = load_lane_of_group(x + at_row(part), size_of(part));
    gate = load_lane_of_group(z + at_row(part), size_of(part));
    if (gate_first) {
#pragma unroll
      for (uint32_t i = 0; i < 16; ++i) {
        if (i * 16 + l >= of.n) continue;
        of.v[i] = of.v[i] * exact::silu(gate.v[i]);
        // What does not stay in registers is read from y.
        if (part + step < n_parts) y[at_row(part) + i * 16 + l] = of.v[i];
      }
    }
    const float squares = sum_of_squares(of);
    if (l == 0) shared[part] = squares;
  }
  __syncthreads();
  const float inverse = 1.0f / static_cast<float>(c.group);
  for (uint32_t g = threadIdx.x; g < n_groups; g += blockDim.x) {
    float sum = 0.0f;
    for (uint32_t i = 0; i < of_group; ++i) sum = sum + shared[g * of_group + i];
    factors[g] = exact::rsqrt(__fmaf_rn(sum, inverse, c.eps));
  }
  __syncthreads();
  // The parts are visited from the last to the first, because the last one's values are still in registers.
  for (uint32_t part = mine; half_warp < n_parts; part -= step) {
    if (part != mine) {
      of = load_lane_of_group((gate_first ? y : x) + at_row(part), size_of(part));
      if (!gate_first) gate = load_lane_of_group(z + at_row(part), size_of(part));
    }
    const float* weights = w + (has_own_weights ? at_row(part) : at_group(part));
    const float factor = factors[part / of_group];
    constexpr uint32_t kAhead = 8;  // weights whose loads are issued before the first result is stored
#pragma unroll
    for (uint32_t begin = 0; begin < 16; begin += kAhead) {
      float weight[kAhead];
#pragma unroll
      for (uint32_t i = 0; i < kAhead; ++i) weight[i] = weights[min((begin + i) * 16 + l, of.n - 1)];
#pragma unroll
      for (uint32_t i = 0; i < kAhead; ++i) {
        const uint32_t at = (begin + i) * 16 + l;
        if (at >= of.n) continue;
        const float normed = of.v[begin + i] * factor * weight[i];
        y[at_row(part) + at] = gate_first ? normed : normed * exact::silu(gate.v[begin + i]);
      }
    }
    if (part < step) break;
  }
}
