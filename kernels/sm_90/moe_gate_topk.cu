// MOE_GATE_TOPK after its matrix product: softmax over the experts' logits, the n_used largest, their weights; a
// workgroup a token. Order: kernels/cpu/moe_gate_topk.cpp. Symbols: n, e. Shared: e floats, 128 words.
#include "kernels/sm_90/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void moe_gate_topk(const __grid_constant__ OpArgs args) {
  ZRT_DYNAMIC_SHARED(float, p);
  wait_for_inputs();
  let_next_start();
  const auto c = args.constants<push::MoeGateTopk>();
  const uint32_t t = blockIdx.x, e = args.dim(1), lane = threadIdx.x;
  if (t >= args.dim(0)) return;
  uint32_t* words = reinterpret_cast<uint32_t*>(p + e);
  const float* logits = args.buffer<const float>(2) + static_cast<uint64_t>(t) * e;
  auto* ids = args.buffer<int32_t>(3) + static_cast<uint64_t>(t) * c.n_used;
  float* weights = args.buffer<float>(4) + static_cast<uint64_t>(t) * c.n_used;
  const float most = logits[argmax_row(logits, e, words)];
  for (uint32_t i = lane; i < e; i += blockDim.x) p[i] = exact::exp(logits[i] - most);
  __syncthreads();
  if (lane >= 32) return;
  float sum = 0.0f;
  for (uint32_t i = lane % 16; i < e; i += 16) sum = sum + p[i];
  sum = fold_half_warp(sum);
  const float inverse = exact::rcp(sum);
  // Each lane remembers which of its experts (lane + 32 i) are taken.
  uint64_t taken = 0;
  for (uint32_t j = 0; j < c.n_used; ++j) {
    Best best{0.0f, kAbsent};
    uint32_t first = e;  // of those left
    for (uint32_t i = lane, bit = 0; i < e; i += 32, ++bit) {
      if ((taken >> bit & 1) != 0) continue;
      first = min(first, i);
      if (logits[i] == logits[i]) best = better(best, Best{logits[i], i});
    }
    for (int w = 16; w > 0; w /= 2) {
      best =
          better(best, Best{__shfl_xor_sync(0xFFFFFFFFu, best.value, w), __shfl_xor_sync(0xFFFFFFFFu, best.index, w)});
      first = min(first, __shfl_xor_sync(0xFFFFFFFFu, first, w));
    }
    // The reference compares upward from the first one left, and nothing is larger than a NaN.
    const uint32_t chosen = logits[first] == logits[first] ? best.index : first;
    if (chosen % 32 == lane) taken |= 1ull << (chosen / 32);
    if (lane == 0) ids[j] = static_cast<int32_t>(chosen), weights[j] = p[chosen] * inverse;
  }
  if (lane != 0) return;
  if (c.renormalize != 0) {
    float chosen = 0.0f;
    for (uint32_t j = 0; j < c.n_used; ++j) chosen = chosen + weights[j];
    const float r = exact::rcp(chosen);
    for (uint32_t j = 0; j < c.n_used; ++j) weights[j] = weights[j] * r;
  }
  if (c.scale != 1.0f)
    for (uint32_t j = 0; j < c.n_used; ++j) weights[j] = weights[j] * c.scale;
}

// The choices of all tokens by expert, for products that read each expert's weights once. One workgroup. Buffers: 0 ids
// [n, k], 1 items [1 + 3 max], 2 order [n k]. Symbols: n, k, e, choices an item. Choices of no expert make items of
// their own, which give NaN. Shared: 2 e + 2 words.
extern "C" __global__ void moe_group(const __grid_constant__ OpArgs args) {
  ZRT_DYNAMIC_SHARED(uint32_t, counts);
  wait_for_inputs();
  let_next_start();
  const uint32_t n = args.dim(0) * args.dim(1), e = args.dim(2), most = args.symbols[3];
  uint32_t* places = counts + e + 1;  // of each expert's choices in the order; [e]: those of none
  const int32_t* ids = args.buffer<const int32_t>(0);
  auto *items = args.buffer<int32_t>(1), *order = args.buffer<int32_t>(2);
  const auto expert_of = [&](uint32_t i) { return min(static_cast<uint32_t>(ids[i]), e); };
  for (uint32_t i = threadIdx.x; i <= e; i += blockDim.x) counts[i] = 0;
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&counts[expert_of(i)], 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    uint32_t at = 0;
    int32_t n_items = 0;
    for (uint32_t x = 0; x <= e; ++x) {
      places[x] = at;
      for (uint32_t done = 0; done < counts[x]; done += most) {
        int32_t* item = items + 1 + 3 * n_items++;
        item[0] = static_cast<int32_t>(x), item[1] = static_cast<int32_t>(at + done);
        item[2] = static_cast<int32_t>(min(most, counts[x] - done));
      }
      at += counts[x];
    }
    items[0] = n_items;
  }
  __syncthreads();
  // Which column a choice gets is chance; no sum meets another column.
  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
    order[atomicAdd(&places[expert_of(i)], 1)] = static_cast<int32_t>(i);
}
