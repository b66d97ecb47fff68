// The push constants of each op: a struct with the attributes of the op's rule (cpp/ir/op_rules.cpp; docs/ir.md lists
// them), in the same order, 4 bytes each. Ops without attributes have no struct. Shared by host and device (C++17,
// POD).
#pragma once

#include <stdint.h>

namespace zinc_rt::push {

// How act(gate) and up become a value: act(gate) * up, or the clamped form of gpt-oss (exact_math.h: swiglu_oai).
enum Activation : uint32_t { kSilu = 0, kGeluTanh = 1, kSwigluOai = 2 };
// How a router's logits become likelihoods: by the softmax over all experts, or by the sigmoid of each.
enum Gating : uint32_t { kSoftmax = 0, kSigmoid = 1 };
// What follows the sum of SSM_CONV1D.
enum ConvActivation : uint32_t { kConvSilu = 0, kConvNone = 1 };

struct Embed {
  float scale;
};
struct RmsNorm {
  float eps;
  uint32_t group;
};
struct RmsNormFusedQkv {
  float eps;
  uint32_t quantize;
};
struct RmsNormFusedMlpGateUp {
  float eps;
  uint32_t quantize;
};
struct Rope {
  uint32_t head_dim, n_rot, neox;
};
struct RmsNormFusedRopeKvWrite {
  float eps;
  uint32_t head_dim, n_rot, neox;
};
struct FlashAttn {
  uint32_t n_heads, n_kv_heads, head_dim, v_head_dim;
  float scale;
  uint32_t window;
  float softcap;
};
struct MoeGateTopk {
  uint32_t n_used, renormalize;
  float scale;
  uint32_t gating, groups, groups_used;
};
struct MoeSwiglu {
  uint32_t act;
};
struct SharedExpert {
  uint32_t act, quantize;
};
struct SsmConv1d {
  uint32_t width, taps, act;
};
struct SsmDeltaNet {
  uint32_t n_k_heads, n_v_heads, k_dim, v_dim, tiled;
  float eps;
};
struct SsmGatedNorm {
  float eps;
  uint32_t group, gate_first;
};
struct SsmScan {
  uint32_t n_heads, n_groups, head_dim, state_dim;
};
struct ResidualRmsNorm {
  float eps;
};
struct KvWriteBatched {
  uint32_t head_dim;
};
struct RequestState {
  uint32_t field;
};
struct Glu {
  uint32_t act;
};
struct Scale {
  float scale;
};
struct Softcap {
  float cap;
};
struct Slice {
  uint32_t groups, group, first, width;
};
struct Concat {
  uint32_t groups, first, width;
};
struct MoeLinear {
  uint32_t rows;
};
struct LayerNorm {
  float eps;
};

static_assert(sizeof(Embed) == 4 && sizeof(RmsNorm) == 8 && sizeof(RmsNormFusedQkv) == 8, "4 bytes an attribute");
static_assert(sizeof(RmsNormFusedMlpGateUp) == 8 && sizeof(Rope) == 12 && sizeof(RmsNormFusedRopeKvWrite) == 16,
              "4 bytes an attribute");
static_assert(sizeof(FlashAttn) == 28 && sizeof(MoeGateTopk) == 24 && sizeof(MoeSwiglu) == 4, "4 bytes an attribute");
static_assert(sizeof(SharedExpert) == 8 && sizeof(SsmConv1d) == 12 && sizeof(SsmDeltaNet) == 24,
              "4 bytes an attribute");
static_assert(sizeof(SsmGatedNorm) == 12 && sizeof(SsmScan) == 16 && sizeof(ResidualRmsNorm) == 4 &&
                  sizeof(KvWriteBatched) == 4,
              "4 bytes an attribute");
static_assert(sizeof(Concat) == 12, "4 bytes an attribute");
static_assert(sizeof(Slice) == 16 && sizeof(MoeLinear) == 4 && sizeof(LayerNorm) == 4, "4 bytes an attribute");
static_assert(sizeof(RequestState) == 4 && sizeof(Glu) == 4 && sizeof(Scale) == 4 && sizeof(Softcap) == 4,
              "4 bytes an attribute");

}  // namespace zinc_rt::push
