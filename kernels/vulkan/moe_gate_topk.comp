// Computes MOE_GATE_TOPK after its product: from a token's logits, one per expert, the n_used most likely experts (the
// lower id on a tie), the most likely first. Their weights are their softmax over all experts, divided by the sum of
// the chosen ones, times scale. A NaN counts as less than any other logit, so that the ids are always those of experts.
// Order of sums: softmax takes the maximum, exp, and the sum in 16 lanes (lane = expert mod 16), folded, and multiplies
// by the sum's reciprocal. The sum of the chosen weights runs from the most likely on.
// Grid: (1, tokens). Each workgroup computes one token.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kWidth) in;
#include "largest.glsl"
PUSH(MoeGateTopk);
shared float logits[kMostExperts], likelihoods[kMostExperts], lane_sums[16], best_logits[kWidth];
shared uint best_ids[kWidth];
const uint kTaken = 0xFFFFFFFFu;

bool is_before(float a, uint a_id, float b, uint b_id) { return a > b || (a == b && a_id < b_id); }

// Returns the id of the most likely expert that is left. REQUIRES: all invocations call it, and the caller marks the
// expert as taken.
uint take_best() {
  uint id = gl_LocalInvocationID.x, best = kTaken;
  for (uint i = id; i < p.n_experts; i += kWidth) {
    if (floatBitsToUint(likelihoods[i]) == kTaken) continue;
    if (best == kTaken || is_before(logits[i], i, logits[best], best)) best = i;
  }
  best_ids[id] = best;
  best_logits[id] = best == kTaken ? -kInfinity : logits[best];
  barrier();
  for (uint n = kWidth / 2; n > 0; n /= 2) {
    if (id < n && is_before(best_logits[id + n], best_ids[id + n], best_logits[id], best_ids[id])) {
      best_ids[id] = best_ids[id + n];
      best_logits[id] = best_logits[id + n];
    }
    barrier();
  }
  return best_ids[0];
}

void main() {
  uint id = gl_LocalInvocationID.x;
  Floats from = Floats(float_row(p.logits, row(), p.n_experts));
  float most = -kInfinity;
  for (uint i = id; i < p.n_experts; i += kWidth) {
    float logit = from.v[i];
    logits[i] = (floatBitsToUint(logit) & 0x7FFFFFFFu) > 0x7F800000u ? -kInfinity : logit;
    most = logits[i] > most ? logits[i] : most;
  }
  most = largest(most, -kInfinity);
  for (uint i = id; i < p.n_experts; i += kWidth) likelihoods[i] = exact_exp(from.v[i] - most);
  barrier();
  if (id < 16) {
    float sum = 0.0;
    for (uint i = id; i < p.n_experts; i += 16) sum = sum + likelihoods[i];
    lane_sums[id] = sum;
  }
  barrier();
  float lane[16];
  for (int l = 0; l < 16; ++l) lane[l] = lane_sums[l];
  float inverse = rcp(fold16(lane));
  Words ids = Words(float_row(p.ids, row(), p.n_used));
  Floats weights = Floats(float_row(p.weights, row(), p.n_used));
  float sum = 0.0;
  for (uint j = 0; j < p.n_used; ++j) {
    uint best = take_best();
    float weight = likelihoods[best] * inverse;
    barrier();
    if (id == 0) {
      likelihoods[best] = uintBitsToFloat(kTaken);
      ids.v[j] = best;
      weights.v[j] = weight;
    }
    sum = sum + weight;
    barrier();
  }
  if (id != 0) return;
  float r = rcp(sum);
  for (uint j = 0; j < p.n_used; ++j) {
    float weight = weights.v[j] * r;
    weights.v[j] = p.scale != 1.0 ? weight * p.scale : weight;
  }
}
