// MOE_GATE_TOPK after its matrix product: softmax over the experts' logits, the n_used largest, their weights; a
// workgroup a token. Order: kernels/cpu/moe_gate_topk.cpp. Symbols: n, e. Shared: 2 e + n_used floats, 64 words.
#include "kernels/sm_90/device.cuh"

using namespace zinc_rt::cuda;

// Numbers in the order of the floats, -0 as 0; a NaN below all.
__device__ __forceinline__ uint32_t key_of(float x) {
  if (x != x) return 0;
  const uint32_t bits = __float_as_uint(x + 0.0f);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

extern "C" __global__ void moe_gate_topk(const __grid_constant__ OpArgs args) {
  ZRT_DYNAMIC_SHARED(float, p);
  wait_for_inputs();
  let_next_start();
  const auto c = args.constants<push::MoeGateTopk>();
  const uint32_t t = blockIdx.x, e = args.dim(1), lane = threadIdx.x;
  if (t >= args.dim(0)) return;
  float *logits = p + e, *chosen = logits + e;
  uint32_t* words = reinterpret_cast<uint32_t*>(chosen + c.n_used);
  for (uint32_t i = lane; i < e; i += blockDim.x)
    logits[i] = args.buffer<const float>(2)[static_cast<uint64_t>(t) * e + i];
  __syncthreads();
  const float most = logits[argmax_row(logits, e, words)];
  __syncthreads();  // all have read the largest before keys take the place of logits
  auto* keys = reinterpret_cast<uint32_t*>(logits);
  for (uint32_t i = lane; i < e; i += blockDim.x) {
    p[i] = exact::exp(logits[i] - most);
    keys[i] = key_of(logits[i]);
  }
  __syncthreads();
  if (lane >= 32) return;
  float sum = 0.0f;
  for (uint32_t i = lane % 16; i < e; i += 16) sum = sum + p[i];
  sum = fold_half_warp(sum);
  const float inverse = exact::rcp(sum);
  // Each lane remembers which of its experts (lane + 32 i) are taken.
  uint64_t taken = 0;
  for (uint32_t j = 0; j < c.n_used; ++j) {
    uint32_t best = 0, at = kAbsent, first = kAbsent;  // first: of those left
    for (uint32_t i = lane, bit = 0; i < e; i += 32, ++bit) {
      if ((taken >> bit & 1) != 0) continue;
      first = min(first, i);
      if (keys[i] > best) best = keys[i], at = i;
    }
    const uint32_t most_likely = __reduce_max_sync(0xFFFFFFFFu, best);
    at = __reduce_min_sync(0xFFFFFFFFu, best == most_likely ? at : kAbsent);
    first = __reduce_min_sync(0xFFFFFFFFu, first);
    // The reference compares upward from the first one left, and nothing is larger than a NaN.
    const uint32_t next = keys[first] != 0 ? at : first;
    if (next % 32 == lane) taken |= 1ull << (next / 32);
    if (lane != 0) continue;
    args.buffer<int32_t>(3)[static_cast<uint64_t>(t) * c.n_used + j] = static_cast<int32_t>(next);
    chosen[j] = p[next] * inverse;
  }
  __syncwarp();
  float r = 1.0f;
  if (c.renormalize != 0) {
    float total = 0.0f;
    for (uint32_t j = 0; j < c.n_used; ++j) total = total + chosen[j];
    r = exact::rcp(total);
  }
  for (uint32_t j = lane; j < c.n_used; j += 32) {
    float weight = chosen[j];
    if (c.renormalize != 0) weight = weight * r;
    if (c.scale != 1.0f) weight = weight * c.scale;
    args.buffer<float>(4)[static_cast<uint64_t>(t) * c.n_used + j] = weight;
  }
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
  if (threadIdx.x < 32) {  // a lane an expert, 32 at a time
    uint32_t choices_before = 0, items_before = 0;
    for (uint32_t first = 0; first <= e; first += 32) {
      const uint32_t x = first + threadIdx.x, count = x <= e ? counts[x] : 0, n_own = (count + most - 1) / most;
      uint32_t choices = count, n_items = n_own;  // up to this expert's
      for (uint32_t w = 1; w < 32; w *= 2) {
        const uint32_t more_choices = __shfl_up_sync(0xFFFFFFFFu, choices, w),
                       more_items = __shfl_up_sync(0xFFFFFFFFu, n_items, w);
        if (threadIdx.x >= w) choices += more_choices, n_items += more_items;
      }
      const uint32_t at = choices_before + choices - count;
      if (x <= e) places[x] = at;
      for (uint32_t i = 0; i < n_own; ++i) {
        int32_t* item = items + 1 + 3 * (items_before + n_items - n_own + i);
        item[0] = static_cast<int32_t>(x), item[1] = static_cast<int32_t>(at + i * most);
        item[2] = static_cast<int32_t>(min(most, count - i * most));
      }
      choices_before += __shfl_sync(0xFFFFFFFFu, choices, 31);
      items_before += __shfl_sync(0xFFFFFFFFu, n_items, 31);
    }
    if (threadIdx.x == 0) items[0] = static_cast<int32_t>(items_before);
  }
  __syncthreads();
  // Which column a choice gets is chance; no sum meets another column.
  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
    order[atomicAdd(&places[expert_of(i)], 1)] = static_cast<int32_t>(i);
}
