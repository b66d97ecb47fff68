// Device functions that most kernels share: the waits at a kernel's beginning, reductions and sums in the fixed order
// of docs/arithmetic.md, and the ops that several kernels contain (RMS_NORM, QUANTIZE, ROPE, GLU, ARGMAX).
#pragma once

#include "kernels/common/digits.h"
#include "kernels/common/exact_math.h"
#include "kernels/common/half.h"
#include "kernels/common/push.h"
#include "kernels/cuda/args.h"
#include "kernels/cuda/dtypes.h"
#include "kernels/cuda/ptx.cuh"

namespace zinc_rt::cuda {

// Aliases, so that a kernel's file needs no other using directive than `using namespace zinc_rt::cuda`.
namespace exact = zinc_rt::exact;
namespace push = zinc_rt::push;

__device__ __forceinline__ float nan_value() {
  return __uint_as_float(0x7fc00000u);
}

// Returns whether the step has a row t. Row 0 needs no look at the step's header if the number of rows is the number of
// tokens, because a step has at least one token.
__device__ __forceinline__ bool has_row(const OpArgs& args, uint32_t t) {
  return (t == 0 && args.symbols[symbol::Rows::rows] == kSymbolicTokens) || t < args.dim(symbol::Rows::rows);
}

// Waits until positions, slots and page tables may be read: not at all if step_begin has copied them already
// (has_places). For all other inputs a kernel calls wait_for_inputs(), which it may do later.
__device__ __forceinline__ void wait_for_places(const OpArgs& args) {
  if (args.has_places == 0) wait_for_inputs();
}

// Folds the values of the 16 lanes of a half warp as kernels/common/fold.h does: GPU lane i holds lane i % 16 of the
// order of sums. All 16 lanes get the result.
__device__ __forceinline__ float fold_half_warp(float v) {
  const uint32_t mask = 0xFFFFu << (threadIdx.x & 16);
#pragma unroll
  for (int width = 8; width > 0; width /= 2) v = v + __shfl_xor_sync(mask, v, width);
  return v;
}

// LaneOfGroup is what one lane of a half warp holds of a group of up to 256 values: v[i] = x[i * 16 + lane % 16]. All
// loads are issued at once and without a condition: indexes from n on load the last value instead. n: values of the
// group.
struct LaneOfGroup {
  float v[16];
  uint32_t n;
};
// Loads the lane's values of a group of n values that begins at x.
__device__ __forceinline__ LaneOfGroup load_lane_of_group(const float* x, uint32_t n) {
  const uint32_t l = threadIdx.x & 15;
  LaneOfGroup of;
  of.n = n;
  if (n == 256) {
#pragma unroll
    for (uint32_t i = 0; i < 16; ++i) of.v[i] = x[i * 16 + l];
  } else {
#pragma unroll
    for (uint32_t i = 0; i < 16; ++i) of.v[i] = x[min(i * 16 + l, n - 1)];
  }
  return of;
}
// Returns the sum of squares of the group in the fixed order (16 lanes, fold). All lanes of the half warp get it.
__device__ __forceinline__ float sum_of_squares(const LaneOfGroup& of) {
  const uint32_t l = threadIdx.x & 15;
  float lane = 0.0f;
#pragma unroll
  for (uint32_t i = 0; i < 16; ++i)
    if (i * 16 + l < of.n) lane = __fmaf_rn(of.v[i], of.v[i], lane);
  return fold_half_warp(lane);
}
// Returns the sum of squares of n values from x on, in the fixed order. All lanes of the half warp get it.
__device__ __forceinline__ float square_group(const float* x, uint32_t n) {
  return sum_of_squares(load_lane_of_group(x, n));
}

// Returns the size, in floats, of the shared memory that rms_norm_row needs.
ZRT_CUDA_HD uint32_t rms_floats(uint32_t d, uint32_t group) {
  return d / group * ((group + 255) / 256 + 1);
}
// RMS_NORM of one row of d values, in groups of `group` values that are normalized separately, by all threads of a
// workgroup. w is null if there are no weights. y may be x. Ends with a barrier, so all threads may read y.
__device__ inline void rms_norm_row(const float* x, const float* w, float* y, uint32_t d, uint32_t group, float eps,
                                    float* shared) {
  const uint32_t parts = (group + 255) / 256, n_groups = d / group;
  float* factor = shared + n_groups * parts;
  for (uint32_t i = threadIdx.x / 16; i < n_groups * parts; i += blockDim.x / 16) {
    const uint32_t first = i % parts * 256;
    const float v = square_group(x + i / parts * group + first, group - first < 256 ? group - first : 256);
    if ((threadIdx.x & 15) == 0) shared[i] = v;
  }
  __syncthreads();
  const float inverse = 1.0f / static_cast<float>(group);
  for (uint32_t g = threadIdx.x; g < n_groups; g += blockDim.x) {
    float sum = 0.0f;
    for (uint32_t i = 0; i < parts; ++i) sum = sum + shared[g * parts + i];
    factor[g] = exact::rsqrt(__fmaf_rn(sum, inverse, eps));
  }
  __syncthreads();
  // Loads of this many values are issued before the first result is stored. The compiler could not reorder them itself,
  // because y may be x.
  constexpr uint32_t kAhead = 4;
  for (uint32_t first = threadIdx.x; first < d; first += kAhead * blockDim.x) {
    float v[kAhead], scale[kAhead];
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j) {
      const uint32_t i = first + j * blockDim.x;
      v[j] = i < d ? x[i] : 0.0f;
      scale[j] = i < d && w != nullptr ? w[i % group] : 1.0f;
    }
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j) {
      const uint32_t i = first + j * blockDim.x;
      if (i >= d) break;
      const float scaled = v[j] * factor[i / group];
      y[i] = w != nullptr ? scaled * scale[j] : scaled;
    }
  }
  __syncthreads();
}

// The beginning of a kernel that quantizes n rows for a product: waits for the inputs, and lets the next launch (the
// product) start.
// With several rows, the product may start at once. All of this kernel's workgroups already run on a multiprocessor by
// then, so the product's workgroups do not displace them, and can load weights while they wait.
// With one row that is slower (2 % of a step), because a product runs beside this launch, and the next product's loads
// of weights would delay it.
__device__ __forceinline__ void begin_rows(uint32_t n) {
  if (n > 1) let_next_start();
  wait_for_inputs();
  if (n <= 1) let_next_start();
}

// Eight is what one lane of a warp holds of 256 values. The lanes 4 b to 4 b + 3 hold block b of 32 values. Within the
// block, the lane holds values c to c + 3 and c + 16 to c + 19, where c = lane % 4 * 4. first_of_eight() returns the
// index of the lane's first value among the 256.
struct Eight {
  float v[8];
};
__device__ __forceinline__ uint32_t first_of_eight() {
  return threadIdx.x % 32 / 4 * 32 + threadIdx.x % 4 * 4;
}
// Loads the lane's eight values of a row of k values. at: index of the lane's first value. Returns zeros if at >= k.
__device__ __forceinline__ Eight load_eight(const float* row, uint32_t at, uint32_t k) {
  if (at >= k) return Eight{};
  const float4 a = *reinterpret_cast<const float4*>(row + at), b = *reinterpret_cast<const float4*>(row + at + 16);
  return Eight{{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}

// QuantizedEight is the lane's part of 256 quantized values (QUANTIZE). words: the eight codes. sum: the sum of the
// codes of the block of 32 that the lane is in; for q8a256, two sums of 16 in the halves of the word. d: the scale.
// For q16a256, whose codes have two digits, `words` holds the high digits and `low` the low ones, and `sum` is 0.
struct QuantizedEight {
  uint32_t words[2], low[2], sum;
  float d;
};
// Quantizes the 256 values of a warp, of which each lane passes its eight. The rule is that of
// kernels/cpu/quantize.cpp.
template <ActType kType>
__device__ __forceinline__ QuantizedEight quantized(const Eight& x) {
  constexpr uint32_t kAll = 0xFFFFFFFFu;
  constexpr bool kBlocks256 = kType != kQ8A32;
  constexpr float kMost = kType == kQ16A256 ? digits::kMost : 127.0f;
  uint32_t most = 0;  // The magnitudes are compared as bits, because NaN and infinities are then the largest.
#pragma unroll
  for (int i = 0; i < 8; ++i) most = max(most, __float_as_uint(x.v[i]) & 0x7FFFFFFFu);
  if constexpr (kBlocks256) {
    most = __reduce_max_sync(kAll, most);
  } else {
    most = max(most, __shfl_xor_sync(kAll, most, 1));
    most = max(most, __shfl_xor_sync(kAll, most, 2));
  }
  const float amax = __uint_as_float(most);
  const bool is_usable = amax >= 0x1p-100f && amax <= 0x1p120f;
  // If d is NaN, codes and sums do not matter, because products multiply them by d.
  const float safe = is_usable ? amax : 1.0f, inverse = is_usable ? exact::div(kMost, safe) : 0.0f,
              other = amax <= 0x1p120f ? 0.0f : nan_value(), d = is_usable ? exact::div(safe, kMost) : other;
  uint32_t words[2], low[2] = {};
  int sums[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint32_t q[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) q[i] = __float_as_uint(x.v[4 * half + i] * inverse + exact::kRound);
    words[half] = __byte_perm(__byte_perm(q[0], q[1], 0x0040), __byte_perm(q[2], q[3], 0x0040), 0x5410);
    if constexpr (kType == kQ16A256) {
      low[half] = words[half];
#pragma unroll
      for (uint32_t& code : q) code += 128;  // Byte 1 of code + 128 is the high digit.
      words[half] = __byte_perm(__byte_perm(q[0], q[1], 0x0051), __byte_perm(q[2], q[3], 0x0051), 0x5410);
    }
    sums[half] = __dp4a(static_cast<int>(words[half]), 0x01010101, 0);
  }
  if constexpr (kType == kQ16A256) return QuantizedEight{{words[0], words[1]}, {low[0], low[1]}, 0, d};
  // q8a256: the two sums of 16 share a word and are added across lanes together. If the lower sum is negative, it has
  // borrowed 1 from the upper one; the line behind the shuffles gives that back.
  uint32_t sum = static_cast<uint32_t>(kBlocks256 ? sums[0] + sums[1] * 65536 : sums[0] + sums[1]);
  sum += __shfl_xor_sync(kAll, sum, 1);
  sum += __shfl_xor_sync(kAll, sum, 2);
  if (kBlocks256) sum += (sum & 0x8000u) << 1;
  return QuantizedEight{{words[0], words[1]}, {}, sum, d};
}

// Stores the lane's codes, sums and scale in row t of `to` (layout: ActRows). Rows have k values. at: index of the
// lane's first value in the row; nothing is stored if at >= k.
template <ActType kType>
__device__ __forceinline__ void store_eight(const QuantizedEight& q, const ActRows& to, uint64_t t, uint32_t k,
                                            uint32_t at) {
  if (at >= k) return;
  const uint32_t lane = threadIdx.x % 32;
  const uint64_t step = (t * k + at) / 32;
  if constexpr (kType == kQ16A256) {
    auto* high = reinterpret_cast<uint32_t*>(to.qs + step / 8 * 512 + at % 256);
    high[0] = q.words[0], high[4] = q.words[1];
    high[64] = q.low[0], high[68] = q.low[1];
    if (lane == 0) to.d[step / 8] = q.d;
    return;
  }
  reinterpret_cast<uint2*>(to.qs)[step * 4 + lane % 4] = uint2{q.words[0], q.words[1]};
  if (lane % 4 == 0) static_cast<uint32_t*>(to.sums)[step] = q.sum;
  if (kType == kQ8A32 ? lane % 4 == 0 : lane == 0) to.d[kType == kQ8A32 ? step : step / 8] = q.d;
}
// Quantizes the lane's values and stores them as store_eight() does.
template <ActType kType>
__device__ __forceinline__ void quantize_eight(const Eight& x, const ActRows& to, uint64_t t, uint32_t k, uint32_t at) {
  store_eight<kType>(quantized<kType>(x), to, t, k, at);
}
// Quantizes and stores the lane's values in a type that is known only at run time. to: memory of n rows; t: the row; k
// and at as in store_eight.
__device__ __forceinline__ void quantize_eight(uint32_t type, const Eight& x, void* to, uint64_t n, uint64_t t,
                                               uint32_t k, uint32_t at) {
  switch (type) {
    case kQ8A32: return quantize_eight<kQ8A32>(x, q8_rows(to, n, k), t, k, at);
    case kQ16A256: return quantize_eight<kQ16A256>(x, q16_rows(to, n, k), t, k, at);
    default: return quantize_eight<kQ8A256>(x, q8_rows(to, n, k), t, k, at);
  }
}
// QUANTIZE of a row x of k values into row t of `to`. n_warps warps share the row, and the calling warp is number
// `warp` of them.
template <ActType kType>
__device__ inline void quantize_row(const float* x, const ActRows& to, uint64_t t, uint32_t k, uint32_t warp,
                                    uint32_t n_warps) {
  // The loop's condition is the same for all lanes of a warp. In the last group of 256, lanes behind the end of the row
  // store nothing.
  for (uint32_t first = warp * 256; first < k; first += n_warps * 256) {
    const uint32_t at = first + first_of_eight();
    quantize_eight<kType>(load_eight(x, at, k), to, t, k, at);
  }
}

// ROPE of `heads` consecutive heads by all threads of a workgroup. y may be x. table_row: cosines and sines of the
// token's position; if it is null, the position is outside the table and all values become NaN.
__device__ inline void rope_heads(const float* x, const float* table_row, float* y, uint32_t heads, uint32_t head_dim,
                                  uint32_t n_rot, bool neox) {
  const uint32_t half = n_rot / 2, steps = half + (head_dim - n_rot);
  for (uint32_t at = threadIdx.x; at < heads * steps; at += blockDim.x) {
    const uint32_t h = at / steps * head_dim, i = at % steps;
    if (i >= half) {
      const uint32_t rest = h + n_rot + (i - half);
      y[rest] = table_row != nullptr ? x[rest] : nan_value();
      continue;
    }
    const uint32_t first = h + (neox ? i : 2 * i), second = h + (neox ? i + half : 2 * i + 1);
    if (table_row == nullptr) {
      y[first] = y[second] = nan_value();
      continue;
    }
    const float a = x[first], b = x[second], c = table_row[2 * i], s = table_row[2 * i + 1];
    y[first] = __fmaf_rn(-b, s, a * c);
    y[second] = __fmaf_rn(b, c, a * s);
  }
}

// Returns the activation function `act` (a push constant, not kSwigluOai) of x.
__device__ __forceinline__ float activate(uint32_t act, float x) {
  return act == push::kGeluTanh ? exact::gelu_tanh(x) : exact::silu(x);
}

// The whole kernel of an op that computes each value by itself: calls f(i) for each index i of the rows (symbol::Row).
// Grid: (rows, parts of a row).
template <class F>
__device__ __forceinline__ void each_value(const OpArgs& args, const F& f) {
  wait_for_inputs();
  let_next_start();
  const uint32_t t = blockIdx.x, width = args.dim(symbol::Row::width);
  if (t >= args.dim(symbol::Row::rows)) return;
  const uint64_t row = static_cast<uint64_t>(t) * width;
  for (uint32_t i = blockIdx.y * blockDim.x + threadIdx.x; i < width; i += gridDim.y * blockDim.x) f(row + i);
}
// Computes y = act(gate) * up, or swiglu_oai(gate, up). y may be the same memory as gate.
__device__ __forceinline__ void glu_rows(const OpArgs& args, uint32_t act) {
  const float *gate = args.buffer<const float>(binding::Glu::gate), *up = args.buffer<const float>(binding::Glu::up);
  float* y = args.buffer<float>(binding::Glu::y);
  if (act == push::kSwigluOai) {
    each_value(args, [=](uint64_t i) { y[i] = exact::swiglu_oai(gate[i], up[i]); });
    return;
  }
  each_value(args, [=](uint64_t i) { y[i] = activate(act, gate[i]) * up[i]; });
}

// argmax_row() returns the index of the largest of n values; all threads of the workgroup (up to 1,024) get it. On a
// tie the lower index wins. NaN never wins; if all values are NaN, the result is 0. shared: 64 words of scratch memory.
// Best is a candidate for the result, with index kAbsent if there is none yet.
struct Best {
  float value;
  uint32_t index;
};
// Returns the better of two candidates, by the rules of argmax_row().
__device__ __forceinline__ Best better(Best a, Best b) {
  if (b.index == kAbsent) return a;
  if (a.index == kAbsent) return b;
  return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
}
__device__ inline uint32_t argmax_row(const float* x, uint32_t n, uint32_t* shared) {
  Best best{0.0f, kAbsent};
  constexpr uint32_t kAhead = 8;  // Loads of this many values are issued before the first is compared.
  for (uint32_t first = threadIdx.x; first < n; first += kAhead * blockDim.x) {
    float v[kAhead];
#pragma unroll
    for (uint32_t i = 0; i < kAhead; ++i) v[i] = first + i * blockDim.x < n ? x[first + i * blockDim.x] : nan_value();
#pragma unroll
    for (uint32_t i = 0; i < kAhead; ++i)
      if (v[i] == v[i]) best = better(best, Best{v[i], first + i * blockDim.x});
  }
  for (int width = 16; width > 0; width /= 2)
    best = better(
        best, Best{__shfl_xor_sync(0xFFFFFFFFu, best.value, width), __shfl_xor_sync(0xFFFFFFFFu, best.index, width)});
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    shared[threadIdx.x / 32] = __float_as_uint(best.value);
    shared[32 + threadIdx.x / 32] = best.index;
  }
  __syncthreads();
  best = Best{0.0f, kAbsent};
  for (uint32_t i = 0; i < (blockDim.x + 31) / 32; ++i)
    best = better(best, Best{__uint_as_float(shared[i]), shared[32 + i]});
  __syncthreads();
  return best.index == kAbsent ? 0 : best.index;
}

}  // namespace zinc_rt::cuda
