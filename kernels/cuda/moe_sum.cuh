// The sum over a token's choices of weight_j * y[t][j], fma from 0 on.
#pragma once

#include "kernels/cuda/device.cuh"

namespace zinc_rt::cuda {

// A token's choices: rows of d values, experts, weights, and null or a scale of each expert.
struct Choices {
  const float* y;
  const int32_t* ids;
  const float *weights, *scale;
  uint32_t d, n, n_experts;

  // Names: of the kernel's buffers, binding::ChoiceSum or binding::NormRows.
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

__device__ __forceinline__ float fma_values(float w, float v, float z) {
  return __fmaf_rn(w, v, z);
}
__device__ __forceinline__ float4 fma_values(float w, float4 v, float4 z) {
  return make_float4(__fmaf_rn(w, v.x, z.x), __fmaf_rn(w, v.y, z.y), __fmaf_rn(w, v.z, z.z), __fmaf_rn(w, v.w, z.w));
}

// Of values i on, as many as V has.
template <class V>
__device__ __forceinline__ V sum_choices(const Choices& c, uint32_t i) {
  V z{};
  constexpr uint32_t kAhead = 8;  // choices that are asked for before the first is added
  for (uint32_t first = 0; first < c.n; first += kAhead) {
    float weight[kAhead];
    V v[kAhead];
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j) {
      const uint32_t choice = min(first + j, c.n - 1);  // past the last: that one again, without a condition
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
