// RMS_NORM, and the ops that are fused with it: RESIDUAL_RMS_NORM, QUANTIZE of the rows, and the sum over a token's
// experts. The order of sums is that of kernels/cpu/rms_norm.cpp. Grid: one workgroup per row.
#include "kernels/cuda/moe_sum.cuh"
#include "kernels/cuda/row_tiles.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void rms_norm(const __grid_constant__ OpArgs args) {
  ZRT_DYNAMIC_SHARED(float, shared);
  wait_for_inputs();
  let_next_start();
  if (blockIdx.x >= args.dim(symbol::Row::rows)) return;
  const auto c = args.constants<push::RmsNorm>();
  const uint32_t d = args.dim(symbol::Row::width);
  const uint64_t at = static_cast<uint64_t>(blockIdx.x) * d;
  rms_norm_row(args.buffer<const float>(binding::RmsNorm::x) + at, args.buffer<const float>(binding::RmsNorm::w),
               args.buffer<float>(binding::RmsNorm::y) + at, d, c.group, c.eps, shared);
}

// Computes the RMS_NORM of a row into h, in shared memory. If `added` is not null, it is first added to x in place.
// sums: shared memory, one float per group of 256 values. Ends with a barrier.
__device__ __forceinline__ void norm_row(float* x, const float* added, const float* w, uint32_t d, float eps, float* h,
                                         float* sums) {
  const uint32_t n_groups = (d + 255) / 256, l = threadIdx.x % 16, step = blockDim.x / 16;
  // A half warp keeps the values of its group in registers (those of its last group, if the row has more groups than
  // there are half warps).
  float v[16], scale[16];
  uint32_t mine = 0;
  for (uint32_t g = threadIdx.x / 16; g < n_groups; g += step) {
    mine = g;
    float lane = 0.0f;
    // All loads are issued at once, which would not happen if each had a condition.
    const float *x_at = x + g * 256 + l, *w_at = w + g * 256 + l;
    const uint32_t n = d - g * 256;
    if (n >= 256) {
#pragma unroll
      for (uint32_t i = 0; i < 16; ++i) v[i] = x_at[i * 16], scale[i] = w_at[i * 16];
    } else {
#pragma unroll
      for (uint32_t i = 0; i < 16; ++i) {
        const bool is_value = i * 16 + l < n;
        v[i] = is_value ? x_at[i * 16] : 0.0f;
        scale[i] = is_value ? w_at[i * 16] : 0.0f;
      }
    }
    if (added != nullptr) {
      const float* more_at = added + g * 256 + l;
      float more[16];
#pragma unroll
      for (uint32_t i = 0; i < 16; ++i) more[i] = n >= 256 || i * 16 + l < n ? more_at[i * 16] : 0.0f;
#pragma unroll
      for (uint32_t i = 0; i < 16; ++i)
        if (i * 16 + l < n) x[g * 256 + i * 16 + l] = v[i] = v[i] + more[i];
    }
    // Values behind the row's end are 0 and add nothing.
#pragma unroll
    for (uint32_t i = 0; i < 16; ++i) lane = __fmaf_rn(v[i], v[i], lane);
    lane = fold_half_warp(lane);
    if (l == 0) sums[g] = lane;
  }
  __syncthreads();
  float sum = 0.0f;
  for (uint32_t g = 0; g < n_groups; ++g) sum = sum + sums[g];
  const float factor = exact::rsqrt(__fmaf_rn(sum, 1.0f / static_cast<float>(d), eps));
  // The groups are visited from the last to the first, because the last one's values are still in registers.
  for (uint32_t g = mine; threadIdx.x / 16 < n_groups; g -= step) {
    if (g != mine) {
#pragma unroll
      for (uint32_t i = 0; i < 16; ++i)
        if (const uint32_t at = g * 256 + i * 16 + l; at < d) v[i] = x[at], scale[i] = w[at];
    }
#pragma unroll
    for (uint32_t i = 0; i < 16; ++i)
      if (const uint32_t at = g * 256 + i * 16 + l; at < d) h[at] = v[i] * factor * scale[i];
    if (g < step) break;
  }
  __syncthreads();
}

// Stores the normalized row t (h, in shared memory) in each form that later launches read: as floats, quantized (q8a32,
// q8a256, q16a256), and in the tiles that digit_rows.cu would write (digits, fixed_tiles). Buffers that are not wanted
// are null. The quantized rows must not share memory with other buffers.
// kHasFixed: q16a256 or fixed_tiles are wanted. Other launches use a kernel without that code, because each launch
// fetches its instructions from memory.
template <bool kHasFixed>
__device__ __forceinline__ void store_normed(const OpArgs& args, const float* h, uint32_t t, uint32_t n, uint32_t d) {
  if (args.buffers[binding::NormRows::floats] != nullptr)
    for (uint32_t i = threadIdx.x; i < d; i += blockDim.x)
      args.buffer<float>(binding::NormRows::floats)[static_cast<uint64_t>(t) * d + i] = h[i];
  const uint32_t warp = threadIdx.x / 32, n_warps = blockDim.x / 32;
  if (args.buffers[binding::NormRows::q8a32] != nullptr)
    quantize_row<kQ8A32>(h, q8_rows(args.buffers[binding::NormRows::q8a32], n, d), t, d, warp, n_warps);
  if constexpr (kHasFixed) {
    void* const fixed = args.buffers[binding::NormRows::fixed_tiles];
    for (uint32_t g = warp; g < d / 256; g += n_warps) {
      const uint32_t first = g * 256 + first_of_eight();
      const QuantizedEight q = quantized<kQ16A256>(load_eight(h, first, d));
      if (args.buffers[binding::NormRows::q16a256] != nullptr)
        store_eight<kQ16A256>(q, q16_rows(args.buffers[binding::NormRows::q16a256], n, d), t, d, first);
      if (fixed != nullptr) store_fixed(q, fixed, args.symbols[symbol::NormRows::fixed_columns], t, d, g);
    }
  }
  if (args.buffers[binding::NormRows::q8a256] == nullptr && args.buffers[binding::NormRows::digits] == nullptr) return;
  for (uint32_t g = warp; g < d / 256; g += n_warps) {
    const uint32_t first = g * 256 + first_of_eight();
    const QuantizedEight q = quantized<kQ8A256>(load_eight(h, first, d));
    if (args.buffers[binding::NormRows::q8a256] != nullptr)
      store_eight<kQ8A256>(q, q8_rows(args.buffers[binding::NormRows::q8a256], n, d), t, d, first);
    if (args.buffers[binding::NormRows::digits] != nullptr)
      store_digits(q, args.buffers[binding::NormRows::digits], args.symbols[symbol::NormRows::digit_columns], t, d, g);
  }
}

// The kernel of RMS_NORM of rows and of RESIDUAL_RMS_NORM, where `added` (else null) is first added to x in place. Push
// constant: eps. Shared memory: the row, and a float per group of 256 values.
template <bool kHasFixed>
__device__ __forceinline__ void norm_rows_of(const OpArgs& args) {
  ZRT_DYNAMIC_SHARED(float, row);
  const uint32_t n = args.dim(symbol::NormRows::rows), d = args.dim(symbol::NormRows::d), t = blockIdx.x;
  // The weights of the norm have probably left the L2 cache, because all other weights were read since the last step.
  for (uint32_t i = 32 * threadIdx.x; i < d; i += 32 * blockDim.x)
    prefetch_line(args.buffer<const float>(binding::NormRows::w) + i);
  begin_rows(n);
  if (t >= n) return;
  const uint64_t at = static_cast<uint64_t>(t) * d;
  const float* added = args.buffer<const float>(binding::NormRows::added);
  norm_row(args.buffer<float>(binding::NormRows::x) + at, added != nullptr ? added + at : nullptr,
           args.buffer<const float>(binding::NormRows::w), d, args.constants<push::ResidualRmsNorm>().eps, row,
           row + d);
  store_normed<kHasFixed>(args, row, t, n, d);
}
extern "C" __global__ void norm_rows(const __grid_constant__ OpArgs args) {
  norm_rows_of<false>(args);
}
extern "C" __global__ void norm_rows_fixed(const __grid_constant__ OpArgs args) {
  norm_rows_of<true>(args);
}

// The kernel of RMS_NORM of rows to which the sum over their choices of experts is added in place first. choices_y is
// [n, k * d]. expert_scale and z, which receives the sum, may be null. d is a multiple of 4. Shared memory: the row, w,
// and a float per group of 256 values.
template <bool kHasFixed>
__device__ __forceinline__ void moe_sum_norm_rows_of(const OpArgs& args) {
  ZRT_DYNAMIC_SHARED(float, row);
  const uint32_t n = args.dim(symbol::NormRows::rows), d = args.dim(symbol::NormRows::d), t = blockIdx.x;
  float* w = row + d;
  // Weights never change, so they are copied before the inputs are ready.
  for (uint32_t i = 4 * threadIdx.x; i < d; i += 4 * blockDim.x)
    copy_16(w + i, args.buffer<const float>(binding::NormRows::w) + i);
  begin_rows(n);
  if (t >= n) {
    wait_for_copies();
    return;
  }
  const uint64_t at = static_cast<uint64_t>(t) * d;
  const Choices choices(binding::NormRows{}, args, t, d, args.symbols[symbol::NormRows::k],
                        args.symbols[symbol::NormRows::e]);
  for (uint32_t i = 4 * threadIdx.x; i < d; i += 4 * blockDim.x) {
    auto* to = reinterpret_cast<float4*>(args.buffer<float>(binding::NormRows::x) + at + i);
    const float4 x = *to, z = sum_choices<float4>(choices, i),
                 sum = make_float4(x.x + z.x, x.y + z.y, x.z + z.z, x.w + z.w);
    *reinterpret_cast<float4*>(row + i) = *to = sum;
    if (args.buffers[binding::NormRows::z] != nullptr)
      *reinterpret_cast<float4*>(args.buffer<float>(binding::NormRows::z) + at + i) = z;
  }
  wait_for_copies();
  __syncthreads();
  norm_row(row, nullptr, w, d, args.constants<push::ResidualRmsNorm>().eps, row, w + d);
  store_normed<kHasFixed>(args, row, t, n, d);
}
extern "C" __global__ void moe_sum_norm_rows(const __grid_constant__ OpArgs args) {
  moe_sum_norm_rows_of<false>(args);
}
extern "C" __global__ void moe_sum_norm_rows_fixed(const __grid_constant__ OpArgs args) {
  moe_sum_norm_rows_of<true>(args);
}
