// The weighted sum of a token's expert outputs: z = fma(weight_j, y_j, z) over its choices j in order, beginning with z
// = 0. A choice is one token's use of one expert.
#pragma once

#include "kernels/cuda/device.cuh"

namespace zinc_rt::cuda {

// Choices holds what the sum needs for one token: n rows y of d values, the n experts' ids and weights, and optionally
// a scale per expert (null if there is none), by which the weight is multiplied.
struct Choices {
  const float* y;
  const int32_t* ids;
  const float *weights, *scale;
  uint32_t d, n, n_experts;

  // Reads the pointers from the kernel's arguments. Names says at which index each buffer is: binding::ChoiceSum or
  // binding::NormRows. t: the token.
  template <class Names>
  __device__ __forceinline__ Choices(Names, const OpArgs& args, uint32_t t, uint32_t d, uint32_t n, uint32_t n_experts)
      : y(args.buffer<const float>(Names::choices_y) + static_cast<uint64_t>(t) * n * d),
        ids(args.buffer<const int32_t>(Names::ids) + static_cast<uint64_t>(t) * n),
        weights(args.buffer<const float>(Names::weights) + static_cast<uint64_t>(t) * n),
        scale(args.buffer<const float>(Names::expert_scale)),
        d(d),
        n(n),
        n_experts(n_experts) {}
};

// Return fma(w, v, z), for each of their values.
__device__ __forceinline__ float fma_values(float w, float v, float z) {
  return __fmaf_rn(w, v, z);
}
__device__ __forceinline__ float4 fma_values(float w, float4 v, float4 z) {
  return make_float4(__fmaf_rn(w, v.x, z.x), __fmaf_rn(w, v.y, z.y), __fmaf_rn(w, v.z, z.z), __fmaf_rn(w, v.w, z.w));
}

// Returns the sums for the values from index i on: one value if V is float, four if V is float4.
template <class V>
__device__ __forceinline__ V sum_choices(const Choices& c, uint32_t i) {
  V z{};
  constexpr uint32_t kAhead = 8;  // Loads of this many choices are issued before the first is added.
  for (uint32_t first = 0; first < c.n; first += kAhead) {
    float weight[kAhead];
    V v[kAhead];
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j) {
      // Indexes behind the last choice load that one again, so that no load has a condition.
      const uint32_t choice = min(first + j, c.n - 1);
      weight[j] = c.weights[choice];
      v[j] = *reinterpret_cast<const V*>(c.y + static_cast<uint64_t>(choice) * c.d + i);
      if (c.scale == nullptr) continue;
      const auto id = static_cast<uint32_t>(c.ids[choice]);
      weight[j] = id < c.n_experts ? weight[j] * c.scale[id] : nan_value();
    }
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j)
      if (first + j < c.n) z = fma_values(weight[j], v[j], z);
  }
  return z;
}

}  // namespace zinc_rt::cuda
