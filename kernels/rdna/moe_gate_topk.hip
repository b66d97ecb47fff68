// moe_gate_topk computes the op MOE_GATE_TOPK after its matrix product (defined by kernels/cpu/moe_gate_topk.cpp): the
// likelihoods of e experts, the n_used best experts, and their weights. Each workgroup is one wave and computes one
// token.
// moe_items sorts the choices of all tokens by expert. With it a product reads each expert's weights once for several
// columns (product_args.h).
#include "kernels/rdna/device.h"

namespace zinc_rt::rdna {

constexpr uint32_t kNanKey = 1, kNone = 0xFFFFFFFFu;

// key_of() maps floats to numbers above 0 in the same order: -0 counts as 0, and a NaN comes below all others.
// float_of() is its inverse.
ZRT_DEVICE uint32_t key_of(float x) {
  if (x != x) return kNanKey;
  const uint32_t bits = f32_bits(x + 0.0f);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}
ZRT_DEVICE float float_of(uint32_t key) {
  if (key == kNanKey) return quiet_nan();
  return f32_from_bits(key >> 31 != 0 ? key & 0x7FFFFFFFu : ~key);
}

// Sets the keys of all experts outside the groups_used best groups to 0. A group's score is its largest key's score
// plus its second largest. REQUIRES: one lane of the wave calls it.
ZRT_DEVICE void leave_best_groups(const push::MoeGateTopk& c, uint32_t e, uint32_t* keys, float* of_groups) {
  const uint32_t each = e / c.groups;
  for (uint32_t g = 0; g < c.groups; ++g) {
    uint32_t largest = key_of(-__builtin_inff()), second = largest;
    for (uint32_t i = g * each; i < (g + 1) * each; ++i) {
      second = keys[i] > largest ? largest : keys[i] > second ? keys[i] : second;
      largest = keys[i] > largest ? keys[i] : largest;
    }
    of_groups[g] = each > 1 ? float_of(largest) + float_of(second) : float_of(largest);
  }
  // The groups are left out from the worst on; of equal ones the last is worse.
  for (uint32_t left = c.groups; left > c.groups_used; --left) {
    uint32_t worst = kNone;
    for (uint32_t g = 0; g < c.groups; ++g)
      if (keys[g * each] != 0 && (worst == kNone || of_groups[g] <= of_groups[worst])) worst = g;
    for (uint32_t i = worst * each; i < (worst + 1) * each; ++i) keys[i] = 0;
  }
}

}  // namespace zinc_rt::rdna

ZRT_KERNEL(moe_gate_topk, 32) {
  using namespace zinc_rt;
  using namespace zinc_rt::rdna;
  using Operand = operand::MoeGateTopk;
  __shared__ float p[kMostExperts];
  __shared__ uint32_t keys[kMostExperts];  // 0: this expert is chosen already, or its group is left out
  __shared__ float of_groups[kMostExperts];
  const auto c = constants<push::MoeGateTopk>(args);
  const uint32_t e = dim(args, symbol::GateTopk::e), t = group(0), lane = thread();
  const float* logits = buffer<const float>(args, Operand::logits) + (uint64_t)t * e;
  int32_t* ids = buffer<int32_t>(args, Operand::ids) + (uint64_t)t * c.n_used;
  float* weights = buffer<float>(args, Operand::weights) + (uint64_t)t * c.n_used;
  uint32_t most = 0;
  for (uint32_t i = lane; i < e; i += kWave) {
    keys[i] = key_of(logits[i]);
    most = keys[i] > most ? keys[i] : most;
  }
  if (c.gating == push::kSigmoid) {
    for (uint32_t i = lane; i < e; i += kWave) p[i] = exact::sigmoid(logits[i]);
  } else {
    // A NaN is not the maximum, unless all logits are NaN.
    const float max = float_of(largest_of_wave(most));
    for (uint32_t i = lane; i < e; i += kWave) p[i] = exact::exp(logits[i] - max);
    workgroup_barrier();
    float sum = 0.0f;
    for (uint32_t i = lane % 16; i < e; i += 16) sum = sum + p[i];
    const float inverse = exact::rcp(fold_half(sum));
    workgroup_barrier();
    for (uint32_t i = lane; i < e; i += kWave) p[i] = p[i] * inverse;
  }
  if (args.buffers[Operand::choice_bias] != 0 || c.groups > 1) {
    for (uint32_t i = lane; i < e; i += kWave) {
      const float s =
          args.buffers[Operand::choice_bias] != 0 ? p[i] + buffer<const float>(args, Operand::choice_bias)[i] : p[i];
      keys[i] = key_of(s == s ? s : -__builtin_inff());
    }
    workgroup_barrier();
    if (lane == 0) leave_best_groups(c, e, keys, of_groups);
  }
  workgroup_barrier();
  float total = 0.0f;
  for (uint32_t j = 0; j < c.n_used; ++j) {
    uint32_t best = 0, at = kNone, first = kNone;
    for (uint32_t i = lane; i < e; i += kWave) {
      const uint32_t key = keys[i];
      if (key == 0) continue;
      first = i < first ? i : first;
      if (key > best) best = key, at = i;
    }
    const uint32_t likely = largest_of_wave(best);
    at = least_of_wave(best == likely ? at : kNone);
    first = least_of_wave(first);
    // The reference begins a search with the first expert that is left, and no logit compares as larger than a NaN. So
    // if the first one left has a NaN, it is chosen.
    const uint32_t next = keys[first] != kNanKey ? at : first;
    const float weight = p[next];
    workgroup_barrier();
    if (lane == 0) ids[j] = (int32_t)next, weights[j] = weight, keys[next] = 0;
    total = total + weight;
    workgroup_barrier();
  }
  const float r = c.renormalize != 0 ? inverse_of_weights(total) : 1.0f;
  for (uint32_t j = lane; j < c.n_used; j += kWave) {
    float weight = weights[j];
    if (c.renormalize != 0) weight = weight * r;
    weights[j] = c.scale != 1.0f ? weight * c.scale : weight;
  }
}

// Sorts n choices (ids of experts) by expert, and cuts them into items: up to `columns` choices of one expert. Results:
// `order`, the choices sorted by expert; items[0], the number of items; then, for each item, its expert, its first
// place in `order`, and its number of choices. Ids outside [0, e) become items of an expert e, which does not exist, so
// that products give NaN for them. One workgroup does all of it.
ZRT_KERNEL(moe_items, 256) {
  using namespace zinc_rt;
  using namespace zinc_rt::rdna;
  using Buffer = binding::ChoiceItems;
  using Symbol = symbol::ChoiceItems;
  __shared__ uint32_t counts[kMostExperts + 1], places[kMostExperts + 1];
  const uint32_t n = dim(args, Symbol::n), e = args.symbols[Symbol::e], most = args.symbols[Symbol::columns];
  const int32_t* ids = buffer<const int32_t>(args, Buffer::ids);
  int32_t *items = buffer<int32_t>(args, Buffer::items), *order = buffer<int32_t>(args, Buffer::order);
  const auto expert_of = [&](uint32_t i) { return (uint32_t)ids[i] < e ? (uint32_t)ids[i] : e; };
  for (uint32_t i = thread(); i <= e; i += 256) counts[i] = 0;
  workgroup_barrier();
  for (uint32_t i = thread(); i < n; i += 256)
    __hip_atomic_fetch_add(&counts[expert_of(i)], 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  workgroup_barrier();
  if (thread() == 0) {
    uint32_t place = 0, item = 0;
    for (uint32_t x = 0; x <= e; ++x) {
      places[x] = place;
      for (uint32_t i = 0; i < counts[x]; i += most, ++item) {
        int32_t* to = items + 1 + 3 * item;
        to[0] = (int32_t)x, to[1] = (int32_t)(place + i);
        to[2] = (int32_t)(counts[x] - i < most ? counts[x] - i : most);
      }
      place += counts[x];
    }
    items[0] = (int32_t)item;
  }
  workgroup_barrier();
  // The order of the choices of one expert depends on timing. That changes no result, because each choice is a column
  // of its own.
  for (uint32_t i = thread(); i < n; i += 256)
    order[__hip_atomic_fetch_add(&places[expert_of(i)], 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP)] =
        (int32_t)i;
}
