// Plans that several ops share: products, norms (plan_norms.cpp) and experts (plan_experts.cpp).
// Thread rule: plain functions.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ring/cuda/plan/plan.h"

namespace zinc_rt::ring {

// The bytes of shared memory for the norm of a row of d values in groups. Rounded up to vectors of 16 bytes, because
// the compiler may read it in vectors.
constexpr std::uint64_t rms_bytes(std::uint32_t d, std::uint32_t group) {
  return (std::uint64_t{d} / group * ((group + 255) / 256 + 1) * 4 + 31) / 16 * 16;
}

// LINEAR, LM_HEAD.
void plan_linear_op(Planner& planner, const OpCall& call, const LinearWith& with = {});
// The second layout in which the launch before products of q8a256 rows also writes these rows. Not for arithmetic
// `fast`, whose products read another layout.
DigitRows digits_before(Planner& planner, const OpCall& products, std::uint32_t k, const std::vector<Matrix>& matrices);

// GLU, with its rows quantized to rows.y; rows.x is not read.
void plan_glu_quantize(Planner& planner, const OpCall& call, const gpu::Glu<Place>& glu,
                       const gpu::Quantized<Place>& rows, const DigitRows& digits = {});
// Norms. RMS_NORM, RESIDUAL_RMS_NORM, SSM_GATED_NORM.
void plan_norm(Planner& planner, const OpCall& call);
bool is_row_norm(const OpCall& call);  // whether the call normalizes whole rows and multiplies by w
void plan_norm_quantize(Planner& planner, const OpCall& call, const OpCall& quantize);
using ChoiceSum = gpu::ChoiceSum<Place>;
// Whether the kernel for the norm of a row of d values has shared memory to compute the row's sum first.
bool can_norm_sum(const Planner& planner, std::uint32_t d);
// RMS_NORM_FUSED_QKV; `sum`, if not null, is added to its rows first. RMS_NORM_FUSED_MLP_GATE_UP; `glu`, if not null,
// is the GLU behind it.
void plan_qkv(Planner& planner, const OpCall& call, const ChoiceSum* sum = nullptr);
void plan_gate_up(Planner& planner, const OpCall& call, const GluOf* glu = nullptr);

// Experts. Returns the products of an op of experts, or nothing.
std::optional<Products> expert_products(const OpCall& call);
void plan_experts_op(Planner& planner, const OpCall& call, const GluOf* glu = nullptr);  // MOE_GATE_UP, MOE_LINEAR
// MOE_GATE_TOPK. It also sorts the choices in the order in which the first products after it read them.
void plan_choices(Planner& planner, std::span<const OpCall> calls);
// For one token: plans the first n of these calls as one: the LINEAR whose rows RESIDUAL_RMS_NORM adds, if present; the
// norm; QUANTIZE; MOE_GATE_TOPK. The router's workgroups make the normalized row. As CudaJoin::plan.
std::size_t plan_normed_choices(Planner& planner, std::span<const OpCall> calls, std::size_t n);
void plan_moe_sum(Planner& planner, const OpCall& call);
void plan_moe_down_acc(Planner& planner, const OpCall& call);
void plan_shared_expert(Planner& planner, const OpCall& call);
// MOE_DOWN_ACC, or MOE_SUM and the ADD of its rows; if present and possible also the RMS_NORM_FUSED_QKV of the sum.
// Returns the number of packets planned. floats: absent, or the rows that QUANTIZE turns into the x of MOE_DOWN_ACC
// (LinearWith).
std::size_t plan_choice_sum(Planner& planner, std::span<const OpCall> calls, Place floats = {});

}  // namespace zinc_rt::ring
