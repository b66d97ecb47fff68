// Reads from a call what an op multiplies: the matrices, the rows, and the ops before and after the product. The
// planners of all GPU tiers use these functions; each tier then chooses its launches. Ref is an operand's memory
// (call.h). Thread rule: plain values.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/common/push.h"
#include "ring/gpu/call.h"

namespace zinc_rt::ring::gpu {

template <class Ref>
struct Matrix {
  Ref w;
  DType dtype;
  std::uint32_t rows;  // rows of W, and the number of floats from one row of y to the next
  Ref bias, y;
  std::uint64_t expert_bytes = 0;  // bytes from one expert's matrix to the next
};
template <class Ref>
struct Experts {
  Ref ids = {};  // [rows, choices]; absent: this is not a product of experts
  std::uint32_t choices = 0, n = 0;
  std::uint32_t x_rows = 1;  // rows of x per token: 1, or one per choice
};
// Products describes y = x W^T for several matrices W with the same k, multiplied side by side.
template <class Ref>
struct Products {
  Ref x;
  DType x_dtype;
  std::uint32_t k;
  std::vector<Matrix<Ref>> matrices;
  Experts<Ref> experts = {};
};

// Returns the product of a LINEAR or LM_HEAD.
template <class Ref>
Products<Ref> linear_products(const Call<Ref>& c) {
  using operand::Linear, operand::LmHead, operand::is_same_place;
  static_assert(is_same_place(Linear::x, LmHead::x) && is_same_place(Linear::w, LmHead::w));
  const auto s = c.template symbols<op_symbol::Linear>();
  const bool is_linear = c.op == ir::Op::LINEAR;
  return {c.buffers[Linear::x],
          type_of(s.dtype_x),
          s.k,
          {{c.buffers[Linear::w], type_of(s.dtype_w), s.m, is_linear ? c.buffers[Linear::bias] : Ref{},
            is_linear ? c.buffers[Linear::y] : c.buffers[LmHead::logits]}}};
}

// Returns the product of a MATMUL_WMMA_Q4K.
template <class Ref>
Products<Ref> matmul_q4k_products(const Call<Ref>& c) {
  const auto o = c.template operands<operand::MatmulWmmaQ4K>();
  const auto s = c.template symbols<op_symbol::MatmulQ4K>();
  return {o.a, DType::kQ8A256, s.k, {{o.b, DType::kQ4_K, s.m, {}, o.c}}};
}

// Returns the product of the router in a MOE_GATE_TOPK.
template <class Ref>
Products<Ref> router_products(const Call<Ref>& c) {
  const auto o = c.template operands<operand::MoeGateTopk>();
  const auto s = c.template symbols<op_symbol::GateTopk>();
  return {o.x, type_of(s.dtype_x), s.d, {{o.gate_w, type_of(s.dtype_gate_w), s.e, o.bias, o.logits}}};
}

// Returns the products of a MOE_GATE_UP.
template <class Ref>
Products<Ref> gate_up_products(const Call<Ref>& c) {
  const auto o = c.template operands<operand::MoeGateUp>();
  const auto s = c.template symbols<op_symbol::MoeGateUp>();
  return {o.x,
          type_of(s.dtype_x),
          s.d,
          {{o.gate_w, type_of(s.dtype_gate_w), s.f, {}, o.gate, s.pitch_gate_w},
           {o.up_w, type_of(s.dtype_up_w), s.f, {}, o.up, s.pitch_up_w}},
          {o.ids, s.k, s.e}};
}

// Returns the product that MOE_LINEAR computes.
template <class Ref>
Products<Ref> moe_linear_products(const Call<Ref>& c) {
  const auto o = c.template operands<operand::MoeLinear>();
  const auto s = c.template symbols<op_symbol::MoeLinear>();
  return {o.x,
          type_of(s.dtype_x),
          s.d,
          {{o.w, type_of(s.dtype_w), s.f, {}, o.y, s.pitch_w}},
          {o.ids, s.k, s.e, c.template constants<push::MoeLinear>().rows}};
}

// Returns the product that MOE_DOWN_ACC computes before it sums over the experts. The product's y has one row per
// choice.
template <class Ref>
Products<Ref> down_products(const Call<Ref>& c, Ref y) {
  const auto o = c.template operands<operand::MoeDownAcc>();
  const auto s = c.template symbols<op_symbol::MoeDownAcc>();
  return {o.x,
          type_of(s.dtype_x),
          s.f,
          {{o.down_w, type_of(s.dtype_down_w), s.d, {}, y, s.pitch_down_w}},
          {o.ids, s.k, s.e, s.k}};
}

// The weighted sum over the experts that each token has chosen. It is written to z and added to the hidden rows; either
// may be absent.
template <class Ref>
struct ChoiceSum {
  Ref y = {}, ids = {}, weights = {}, scale = {}, z = {}, hidden = {};
  std::uint32_t d = 0, k = 0, e = 0;
};
// Returns the sum of a MOE_SUM.
template <class Ref>
ChoiceSum<Ref> choice_sum(const Call<Ref>& c) {
  const auto o = c.template operands<operand::MoeSum>();
  const auto s = c.template symbols<op_symbol::MoeSum>();
  return {o.y, o.ids, o.weights, o.expert_scale, o.z, {}, s.d, s.k, s.e};
}
// Returns the sum of a MOE_DOWN_ACC over `y`, which the product of down_products() has written.
template <class Ref>
ChoiceSum<Ref> choice_sum_of_down(const Call<Ref>& c, Ref y) {
  const auto o = c.template operands<operand::MoeDownAcc>();
  const auto s = c.template symbols<op_symbol::MoeDownAcc>();
  return {y, o.ids, o.weights, o.expert_scale, {}, o.hidden, s.d, s.k, s.e};
}

// RMS_NORM of rows of d values, then products of the normalized rows.
template <class Ref>
struct NormedProducts {
  Ref x, norm_w;
  float eps;
  bool is_quantized;  // true: the products read rows quantized to type type_of; false: floats
  std::uint32_t d;
  std::vector<Matrix<Ref>> matrices;

  DType type_of(const Matrix<Ref>& m) const { return is_quantized ? act_dtype(m.dtype) : DType::kF32; }
};
// Returns the norm and the products of a RMS_NORM_FUSED_QKV.
template <class Ref>
NormedProducts<Ref> normed_qkv(const Call<Ref>& c) {
  const auto o = c.template operands<operand::RmsNormFusedQkv>();
  const auto s = c.template symbols<op_symbol::Qkv>();
  const auto push = c.template constants<push::RmsNormFusedQkv>();
  return {o.x,
          o.norm_w,
          push.eps,
          push.quantize != 0,
          s.d,
          {{o.q_w, type_of(s.dtype_q_w), s.nq, o.q_b, o.q},
           {o.k_w, type_of(s.dtype_k_w), s.nk, o.k_b, o.k},
           {o.v_w, type_of(s.dtype_v_w), s.nv, o.v_b, o.v}}};
}
// Returns the norm and the products of a RMS_NORM_FUSED_MLP_GATE_UP.
template <class Ref>
NormedProducts<Ref> normed_gate_up(const Call<Ref>& c) {
  const auto o = c.template operands<operand::RmsNormFusedMlpGateUp>();
  const auto s = c.template symbols<op_symbol::GateUp>();
  const auto push = c.template constants<push::RmsNormFusedMlpGateUp>();
  return {
      o.x,      o.norm_w,
      push.eps, push.quantize != 0,
      s.d,      {{o.gate_w, type_of(s.dtype_gate_w), s.f, {}, o.gate}, {o.up_w, type_of(s.dtype_up_w), s.f, {}, o.up}}};
}

// RowNorm describes RMS_NORM, RESIDUAL_RMS_NORM and SSM_GATED_NORM: y = x / rms(x) * w, over groups within a row of d
// values. If `added` is present, it is first added to x in place. If z is present, it gates the result. w may be
// absent.
template <class Ref>
struct RowNorm {
  Ref x, w, y, added = {}, z = {};
  float eps = 0;
  std::uint32_t d = 0, group = 0;
};
template <class Ref>
RowNorm<Ref> row_norm(const Call<Ref>& c) {
  const std::uint32_t d = c.template symbols<op_symbol::Norm>().d;
  if (c.op == ir::Op::RESIDUAL_RMS_NORM) {
    const auto o = c.template operands<operand::ResidualRmsNorm>();
    return {o.residual, o.w, o.y, o.x, {}, c.template constants<push::ResidualRmsNorm>().eps, d, d};
  }
  if (c.op == ir::Op::SSM_GATED_NORM) {
    const auto o = c.template operands<operand::SsmGatedNorm>();
    const auto push = c.template constants<push::SsmGatedNorm>();
    return {o.x, o.w, o.y, {}, o.z, push.eps, d, push.group};
  }
  const auto o = c.template operands<operand::RmsNorm>();
  const auto push = c.template constants<push::RmsNorm>();
  return {o.x, o.w, o.y, {}, {}, push.eps, d, push.group};
}

// Glu describes GLU and MOE_SWIGLU: y = act(gate) * up.
template <class Ref>
struct Glu {
  Ref gate, up, y;
  std::uint32_t act;
};
template <class Ref>
Glu<Ref> glu(const Call<Ref>& c) {
  static_assert(sizeof(push::Glu) == sizeof(push::MoeSwiglu));
  static_assert(std::string_view(operand::Glu::kText) == operand::MoeSwiglu::kText);
  const auto o = c.template operands<operand::Glu>();
  return {o.gate, o.up, o.y, c.template constants<push::Glu>().act};
}

// Quantized describes QUANTIZE: rows y of a quantized type are made from rows x of k floats.
template <class Ref>
struct Quantized {
  Ref x, y;
  DType type;
  std::uint32_t k;
};
template <class Ref>
Quantized<Ref> quantized(const Call<Ref>& c) {
  const auto o = c.template operands<operand::Quantize>();
  const auto s = c.template symbols<op_symbol::Quantize>();
  return {o.x, o.y, type_of(s.dtype_y), s.k};
}

// SharedExpert describes SHARED_EXPERT: y = (act(gate product) * up product) times down, which is added to `hidden`. If
// gate_inp is present, it gates y per token.
template <class Ref>
struct SharedExpert {
  Ref x, gate_inp, hidden;
  Matrix<Ref> gate, up, down;
  std::uint32_t d, f, act;
  bool is_quantized;

  DType type_of(const Matrix<Ref>& m) const { return is_quantized ? act_dtype(m.dtype) : DType::kF32; }
};
// Returns the shared expert of a call. gate, up and y are memory for the results of the three products.
template <class Ref>
SharedExpert<Ref> shared_expert(const Call<Ref>& c, Ref gate, Ref up, Ref y) {
  const auto o = c.template operands<operand::SharedExpert>();
  const auto s = c.template symbols<op_symbol::SharedExpert>();
  const auto push = c.template constants<push::SharedExpert>();
  return {o.x,
          o.gate_inp,
          o.hidden,
          {o.gate_w, type_of(s.dtype_gate_w), s.f, {}, gate},
          {o.up_w, type_of(s.dtype_up_w), s.f, {}, up},
          {o.down_w, type_of(s.dtype_down_w), s.d, {}, y},
          s.d,
          s.f,
          push.act,
          push.quantize != 0};
}

}  // namespace zinc_rt::ring::gpu
