// MOE_GATE_TOPK after its matrix product: softmax over the experts' logits, the n_used largest, and their weights. The
// order of sums is that of kernels/cpu/moe_gate_topk.cpp. A warp computes a token and holds all experts in registers;
// if there are too many experts for that, a workgroup computes a token. These two have neither biases of the choice
// nor groups, so the most likely expert is among the chosen ones, and rcp() is defined for the sum of their weights.
// Products that read each expert's weights only once need the choices of all tokens sorted by expert. For few tokens,
// the launch that chooses also sorts (moe_gate_topk_sorted_*); else moe_group does.
#include "kernels/common/router.h"
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

// key_of() maps floats to integers above 0 in the same order. -0 becomes 0; a NaN comes below all numbers. float_of()
// is its inverse.
constexpr uint32_t kNanKey = 1;
__device__ __forceinline__ uint32_t key_of(float x) {
  if (x != x) return kNanKey;
  const uint32_t bits = __float_as_uint(x + 0.0f);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ float float_of(uint32_t key) {
  if (key == kNanKey) return nan_value();
  return __uint_as_float(key >> 31 != 0 ? key & 0x7FFFFFFFu : ~key);
}

// Chooses the experts of token t, by a warp, for up to 32 * kHeld experts and up to 32 choices. Register i of a lane is
// for expert lane + 32 * i. Lane j writes choice j and returns its expert.
template <int kHeld>
__device__ __forceinline__ uint32_t choose(const OpArgs& args, uint32_t t) {
  constexpr uint32_t kAll = 0xFFFFFFFFu;
  const auto c = args.constants<push::MoeGateTopk>();
  const uint32_t e = args.dim(symbol::GateTopk::e), lane = threadIdx.x % 32;
  const float* logits = args.buffer<const float>(binding::GateTopk::logits) + static_cast<uint64_t>(t) * e;
  float p[kHeld];
  uint32_t keys[kHeld];  // 0: no expert, or one that was chosen already
#pragma unroll
  for (int i = 0; i < kHeld; ++i) p[i] = logits[min(lane + 32 * i, e - 1)];
  uint32_t best = 0;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    keys[i] = lane + 32 * i < e ? key_of(p[i]) : 0;
    best = max(best, keys[i]);
  }
  const float most = float_of(__reduce_max_sync(kAll, best));
  bool is_nan = false;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    is_nan = is_nan || keys[i] == kNanKey;
    p[i] = keys[i] != 0 ? exact::exp(p[i] - most) : 0.0f;
  }
  const bool has_nan = __ballot_sync(kAll, is_nan ? 1 : 0) != 0;
  // The sum over the experts in the order of docs/arithmetic.md: lane l of its 16 lanes adds experts l, l + 16, l + 32,
  // ... Both half warps compute it. Experts that do not exist add 0.
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    const float other = __shfl_xor_sync(kAll, p[i], 16);
    sum = sum + (lane < 16 ? p[i] : other);
    sum = sum + (lane < 16 ? other : p[i]);
  }
  const float inverse = exact::rcp(fold_half_warp(sum));
  float total = 0.0f, weight = 0.0f;  // total: sum of the weights of all choices; weight: that of this lane's choice
  uint32_t id = 0;
  for (uint32_t j = 0; j < c.n_used; ++j) {
    uint32_t own = 0, at = kAbsent;
#pragma unroll
    for (int i = 0; i < kHeld; ++i) own = max(own, keys[i]);
#pragma unroll
    for (int i = kHeld - 1; i >= 0; --i) at = keys[i] == own ? lane + 32 * i : at;
    uint32_t next = __reduce_min_sync(kAll, own == __reduce_max_sync(kAll, own) ? at : kAbsent);
    // The reference takes the first expert that is not chosen yet, and changes to a later one only if its number
    // compares as larger. Nothing compares as larger than a NaN. So the first such expert is chosen if it has a NaN.
    if (has_nan) {
      uint32_t first = kAbsent;  // 2 * (first expert not chosen yet) + (1 if its logit is a number)
#pragma unroll
      for (int i = kHeld - 1; i >= 0; --i)
        if (keys[i] != 0) first = 2 * (lane + 32 * i) + (keys[i] != kNanKey ? 1 : 0);
      first = __reduce_min_sync(kAll, first);
      if (first % 2 == 0) next = first / 2;
    }
    float likely = 0.0f;
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const bool is_next = lane + 32 * i == next;
      likely = is_next ? p[i] : likely;
      keys[i] = is_next ? 0 : keys[i];
    }
    likely = __shfl_sync(kAll, likely, static_cast<int>(next % 32)) * inverse;
    total = total + likely;
    if (lane == j) id = next, weight = likely;
  }
  if (c.renormalize != 0) weight = weight * exact::rcp(total);
  if (c.scale != 1.0f) weight = weight * c.scale;
  if (lane < c.n_used) {
    args.buffer<int32_t>(binding::GateTopk::ids)[static_cast<uint64_t>(t) * c.n_used + lane] = static_cast<int32_t>(id);
    args.buffer<float>(binding::GateTopk::weights)[static_cast<uint64_t>(t) * c.n_used + lane] = weight;
  }
  return id;
}
// The kernel of one warp per token.
template <int kHeld>
__device__ __forceinline__ void gate_topk(const OpArgs& args) {
  wait_for_inputs();
  let_next_start();
  if (has_row(args, blockIdx.x)) choose<kHeld>(args, blockIdx.x);
}
extern "C" __global__ void __launch_bounds__(32) moe_gate_topk_128(const __grid_constant__ OpArgs args) {
  gate_topk<4>(args);
}
extern "C" __global__ void __launch_bounds__(32) moe_gate_topk_512(const __grid_constant__ OpArgs args) {
  gate_topk<16>(args);
}

// For up to 2048 experts (`taken`) and any number of choices. Grid: one workgroup per token. Shared memory: 2 * e + n_used floats, and 64
// words.
extern "C" __global__ void moe_gate_topk(const __grid_constant__ OpArgs args) {
  ZRT_DYNAMIC_SHARED(float, p);
  wait_for_inputs();
  let_next_start();
  const auto c = args.constants<push::MoeGateTopk>();
  const uint32_t t = blockIdx.x, e = args.dim(symbol::GateTopk::e), lane = threadIdx.x;
  if (t >= args.dim(symbol::GateTopk::rows)) return;
  float *logits = p + e, *chosen = logits + e;
  uint32_t* words = reinterpret_cast<uint32_t*>(chosen + c.n_used);
  for (uint32_t i = lane; i < e; i += blockDim.x)
    logits[i] = args.buffer<const float>(binding::GateTopk::logits)[static_cast<uint64_t>(t) * e + i];
  __syncthreads();
  const float most = logits[argmax_row(logits, e, words)];
  __syncthreads();  // All threads have read the largest logit before keys overwrite the logits.
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
  // Each lane remembers in `taken` which of its experts (lane + 32 * i) are chosen already.
  uint64_t taken = 0;
  for (uint32_t j = 0; j < c.n_used; ++j) {
    uint32_t best = 0, at = kAbsent, first = kAbsent;  // first: this lane's first expert not chosen yet
    for (uint32_t i = lane, bit = 0; i < e; i += 32, ++bit) {
      if ((taken >> bit & 1) != 0) continue;
      first = min(first, i);
      if (keys[i] > best) best = keys[i], at = i;
    }
    const uint32_t most_likely = __reduce_max_sync(0xFFFFFFFFu, best);
    at = __reduce_min_sync(0xFFFFFFFFu, best == most_likely ? at : kAbsent);
    first = __reduce_min_sync(0xFFFFFFFFu, first);
    // The reference takes the first expert that is not chosen yet, and changes to a later one only if its number
    // compares as larger. Nothing compares as larger than a NaN. So the first such expert is chosen if it has a NaN.
    const uint32_t next = keys[first] != kNanKey ? at : first;
    if (next % 32 == lane) taken |= 1ull << (next / 32);
    if (lane != 0) continue;
    args.buffer<int32_t>(binding::GateTopk::ids)[static_cast<uint64_t>(t) * c.n_used + j] = static_cast<int32_t>(next);
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
    args.buffer<float>(binding::GateTopk::weights)[static_cast<uint64_t>(t) * c.n_used + j] = weight;
  }
}

// Finds the groups of experts that are none of the groups_used best. scores: of the experts. of_groups: receives a
// group's score, its largest score plus its second largest. is_out: receives 1 for each group that is left out.
// REQUIRES: all threads of the workgroup call it.
__device__ inline void leave_best_groups(const push::MoeGateTopk& c, uint32_t e, const float* scores, float* of_groups,
                                         uint32_t* is_out) {
  const uint32_t each = e / c.groups;
  for (uint32_t g = threadIdx.x; g < c.groups; g += blockDim.x) {
    float largest = -__int_as_float(0x7f800000), second = largest;
    for (uint32_t i = g * each; i < (g + 1) * each; ++i) {
      second = scores[i] > largest ? largest : scores[i] > second ? scores[i] : second;
      largest = scores[i] > largest ? scores[i] : largest;
    }
    of_groups[g] = each > 1 ? largest + second : largest;
    is_out[g] = 1;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (uint32_t j = 0; j < c.groups_used; ++j) {
      uint32_t next = c.groups;
      for (uint32_t g = 0; g < c.groups; ++g)
        if (is_out[g] != 0 && (next == c.groups || of_groups[g] > of_groups[next])) next = g;
      is_out[next] = 0;
    }
  }
  __syncthreads();
}

// For routers with sigmoids, biases of the choice, or groups of experts. Grid: one workgroup per token. Shared memory:
// 2 * e + 2 * groups + n_used floats, and 64 words.
extern "C" __global__ void moe_gate_topk_scored(const __grid_constant__ OpArgs args) {
  ZRT_DYNAMIC_SHARED(float, p);
  wait_for_inputs();
  let_next_start();
  const auto c = args.constants<push::MoeGateTopk>();
  const uint32_t t = blockIdx.x, e = args.dim(symbol::GateTopk::e), lane = threadIdx.x, each = e / c.groups;
  if (t >= args.dim(symbol::GateTopk::rows)) return;
  const float *logits = args.buffer<const float>(binding::GateTopk::logits) + static_cast<uint64_t>(t) * e,
              *choice_bias = args.buffer<const float>(binding::GateTopk::choice_bias);
  float *better = p + e, *of_groups = better + e;
  auto* is_out = reinterpret_cast<uint32_t*>(of_groups + c.groups);
  float* chosen = reinterpret_cast<float*>(is_out + c.groups);
  auto* words = reinterpret_cast<uint32_t*>(chosen + c.n_used);
  if (c.gating == push::kSigmoid) {
    for (uint32_t i = lane; i < e; i += blockDim.x) p[i] = exact::sigmoid(logits[i]);
  } else {
    const float most = logits[argmax_row(logits, e, words)];
    for (uint32_t i = lane; i < e; i += blockDim.x) p[i] = exact::exp(logits[i] - most);
    __syncthreads();
    float sum = 0.0f;
    for (uint32_t i = lane % 16; i < e; i += 16) sum = sum + p[i];
    const float inverse = exact::rcp(fold_half_warp(sum));
    __syncthreads();
    for (uint32_t i = lane; i < e; i += blockDim.x) p[i] = p[i] * inverse;
  }
  const bool is_scored = choice_bias != nullptr || c.groups > 1;
  for (uint32_t i = lane; i < e; i += blockDim.x) {
    const float s = choice_bias != nullptr ? p[i] + choice_bias[i] : p[i];
    better[i] = !is_scored ? logits[i] : s == s ? s : -__int_as_float(0x7f800000);
  }
  for (uint32_t g = lane; g < c.groups; g += blockDim.x) is_out[g] = 0;
  __syncthreads();
  if (is_scored) leave_best_groups(c, e, better, of_groups, is_out);
  if (lane >= 32) return;
  uint64_t taken = 0;  // as in moe_gate_topk
  for (uint32_t j = 0; j < c.n_used; ++j) {
    uint32_t best = 0, at = kAbsent, first = kAbsent;
    for (uint32_t i = lane, bit = 0; i < e; i += 32, ++bit) {
      if ((taken >> bit & 1) != 0 || is_out[i / each] != 0) continue;
      first = min(first, i);
      if (const uint32_t key = key_of(better[i]); key > best) best = key, at = i;
    }
    at = __reduce_min_sync(0xFFFFFFFFu, best == __reduce_max_sync(0xFFFFFFFFu, best) ? at : kAbsent);
    first = __reduce_min_sync(0xFFFFFFFFu, first);
    const uint32_t next = key_of(better[first]) != kNanKey ? at : first;  // as in moe_gate_topk
    if (next % 32 == lane) taken |= 1ull << (next / 32);
    if (lane != 0) continue;
    args.buffer<int32_t>(binding::GateTopk::ids)[static_cast<uint64_t>(t) * c.n_used + j] = static_cast<int32_t>(next);
    chosen[j] = p[next];
  }
  __syncwarp();
  float r = 1.0f;
  if (c.renormalize != 0) {
    float total = 0.0f;
    for (uint32_t j = 0; j < c.n_used; ++j) total = total + chosen[j];
    r = zinc_rt::inverse_of_weights(total);
  }
  for (uint32_t j = lane; j < c.n_used; j += 32) {
    float weight = chosen[j];
    if (c.renormalize != 0) weight = weight * r;
    if (c.scale != 1.0f) weight = weight * c.scale;
    args.buffer<float>(binding::GateTopk::weights)[static_cast<uint64_t>(t) * c.n_used + j] = weight;
  }
}

// Makes the items from the number of choices of each expert. An item is up to `most` choices of one expert. A warp
// calls it, and each lane handles consecutive experts.
// counts: choices per expert; counts[e] is the number of choices whose id is not that of an expert. places: receives,
// per expert, the index at which its choices begin in the list of all choices sorted by expert. items: receives the
// number of items, then (expert, first index in that list, count) per item. Choices without a valid expert get items of
// their own, whose products are NaN.
__device__ inline void set_items(const uint32_t* counts, uint32_t* places, uint32_t e, uint32_t most, int32_t* items) {
  const uint32_t lane = threadIdx.x % 32, each = e / 32 + 1, first = min(lane * each, e + 1),
                 end = min(first + each, e + 1);
  uint32_t n_choices = 0, n_items = 0;
  for (uint32_t x = first; x < end; ++x) n_choices += counts[x], n_items += (counts[x] + most - 1) / most;
  uint32_t place = n_choices, item = n_items;  // inclusive prefix sums over the lanes
  for (uint32_t w = 1; w < 32; w *= 2) {
    const uint32_t more_choices = __shfl_up_sync(0xFFFFFFFFu, place, w),
                   more_items = __shfl_up_sync(0xFFFFFFFFu, item, w);
    if (lane >= w) place += more_choices, item += more_items;
  }
  if (lane == 31) items[0] = static_cast<int32_t>(item);
  place -= n_choices, item -= n_items;
  for (uint32_t x = first; x < end; ++x) {
    const uint32_t count = counts[x];
    places[x] = place;
    for (uint32_t i = 0; i < count; i += most, ++item) {
      int32_t* to = items + 1 + 3 * item;
      to[0] = static_cast<int32_t>(x), to[1] = static_cast<int32_t>(place + i);
      to[2] = static_cast<int32_t>(min(most, count - i));
    }
    place += count;
  }
}

// Chooses the experts of all tokens, and then sorts the choices by expert. Grid: one workgroup, whose warps take tokens
// in turn. Shared memory: 2 * e + 2 words, and one word per choice.
template <int kHeld>
__device__ __forceinline__ void gate_topk_sorted(const OpArgs& args) {
  ZRT_DYNAMIC_SHARED(uint32_t, words);
  const uint32_t n = args.dim(symbol::GateTopk::rows), e = args.dim(symbol::GateTopk::e), lane = threadIdx.x % 32,
                 warp = threadIdx.x / 32, n_used = args.constants<push::MoeGateTopk>().n_used;
  uint32_t *counts = words, *places = counts + e + 1, *chosen = places + e + 1;
  for (uint32_t i = threadIdx.x; i <= e; i += blockDim.x) counts[i] = 0;
  __syncthreads();
  wait_for_inputs();
  let_next_start();
  for (uint32_t t = warp; t < n; t += blockDim.x / 32) {
    const uint32_t x = min(choose<kHeld>(args, t), e);
    // The order among the choices of an expert is arbitrary, because the sums of different rows of x are independent.
    if (lane < n_used) chosen[t * n_used + lane] = x | atomicAdd(&counts[x], 1) << 16;
  }
  __syncthreads();
  if (warp == 0)
    set_items(counts, places, e, args.symbols[symbol::GateTopk::columns],
              args.buffer<int32_t>(binding::GateTopk::items));
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < n * n_used; i += blockDim.x)
    args.buffer<int32_t>(binding::GateTopk::order)[places[chosen[i] & 0xFFFFu] + (chosen[i] >> 16)] =
        static_cast<int32_t>(i);
}
extern "C" __global__ void __launch_bounds__(1024) moe_gate_topk_sorted_128(const __grid_constant__ OpArgs args) {
  gate_topk_sorted<4>(args);
}
extern "C" __global__ void __launch_bounds__(1024) moe_gate_topk_sorted_512(const __grid_constant__ OpArgs args) {
  gate_topk_sorted<16>(args);
}

// Sorts the choices of all tokens by expert if another launch has made them. Grid: one workgroup. ids is [n, k], items
// [1 + 3 * (number of items)], order [n * k]. Shared memory: 2 * e + 2 words.
extern "C" __global__ void moe_group(const __grid_constant__ OpArgs args) {
  ZRT_DYNAMIC_SHARED(uint32_t, counts);
  wait_for_inputs();
  let_next_start();
  const uint32_t n = args.dim(symbol::MoeGroup::rows) * args.dim(symbol::MoeGroup::k),
                 e = args.dim(symbol::MoeGroup::e);
  uint32_t* places = counts + e + 1;
  const int32_t* ids = args.buffer<const int32_t>(binding::MoeGroup::ids);
  int32_t* order = args.buffer<int32_t>(binding::MoeGroup::order);
  const auto expert_of = [&](uint32_t i) { return min(static_cast<uint32_t>(ids[i]), e); };
  for (uint32_t i = threadIdx.x; i <= e; i += blockDim.x) counts[i] = 0;
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&counts[expert_of(i)], 1);
  __syncthreads();
  if (threadIdx.x < 32)
    set_items(counts, places, e, args.symbols[symbol::MoeGroup::columns],
              args.buffer<int32_t>(binding::MoeGroup::items));
  __syncthreads();
  // The order among the choices of an expert is arbitrary, because the sums of different rows of x are independent.
  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
    order[atomicAdd(&places[expert_of(i)], 1)] = static_cast<int32_t>(i);
}
