// Plans that several ops share: products, norms (plan_norms.cpp) and experts (plan_experts.cpp).
// Thread rule: plain functions.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ring/cuda/plan/plan.h"

namespace zinc_rt::ring {

// Returns the bytes of shared memory for the norm of a row of d values in groups. They are rounded up to vectors of 16
// bytes, because the compiler may read the memory in vectors.
constexpr std::uint64_t rms_bytes(std::uint32_t d, std::uint32_t group) {
  return (std::uint64_t{d} / group * ((group + 255) / 256 + 1) * 4 + 31) / 16 * 16;
}

// Plans LINEAR and LM_HEAD.
void plan_linear_op(Planner& planner, const OpCall& call, const LinearWith& with = {});
// Returns the tiled layout (DigitRows) that the launch before these products should write in addition to the rows. The
// result is empty with arithmetic `fast`, whose products read another layout.
DigitRows digits_before(Planner& planner, const OpCall& products, std::uint32_t k, const std::vector<Matrix>& matrices);

// Plans STREAM_OUT. store: null, or the STORE_REQUEST_STATE of the same rows, which the launch then runs too.
void plan_stream_out(Planner& planner, const OpCall& call, const OpCall* store = nullptr);
// Plans a GLU together with the QUANTIZE of its rows to rows.y. rows.x is not read.
void plan_glu_quantize(Planner& planner, const OpCall& call, const gpu::Glu<Place>& glu,
                       const gpu::Quantized<Place>& rows, const DigitRows& digits = {});
// Plans RMS_NORM and RESIDUAL_RMS_NORM.
void plan_norm(Planner& planner, const OpCall& call);
void plan_gated_norm(Planner& planner, const OpCall& call);  // plans SSM_GATED_NORM
void plan_layer_norm(Planner& planner, const OpCall& call);
bool is_row_norm(const OpCall& call);  // whether the call normalizes whole rows and multiplies by w
void plan_norm_quantize(Planner& planner, const OpCall& call, const OpCall& quantize);
using ChoiceSum = gpu::ChoiceSum<Place>;
// Whether the kernel for the norm of a row of d values has shared memory to compute the row's sum first.
bool can_norm_sum(const Planner& planner, std::uint32_t d);
// plan_qkv plans RMS_NORM_FUSED_QKV. sum: null, or the sum over experts that is added to its rows first. plan_gate_up
// plans RMS_NORM_FUSED_MLP_GATE_UP. glu: null, or the GLU after it, to do as well.
void plan_qkv(Planner& planner, const OpCall& call, const ChoiceSum* sum = nullptr);
void plan_gate_up(Planner& planner, const OpCall& call, const GluOf* glu = nullptr);

// Returns the products of an op of experts (MOE_GATE_UP or MOE_LINEAR), or nullopt for other ops.
std::optional<Products> expert_products(const OpCall& call);
void plan_experts_op(Planner& planner, const OpCall& call, const GluOf* glu = nullptr);  // MOE_GATE_UP, MOE_LINEAR
// Plans MOE_GATE_TOPK (calls[0]). Its launch also sorts the choices, if that is worth it, in the order in which the
// first products after it read them.
void plan_choices(Planner& planner, std::span<const OpCall> calls);
// Plans the first n of these calls together, each for one token. The calls are, in this order: a LINEAR, only if a
// RESIDUAL_RMS_NORM follows, which adds the LINEAR's rows; RMS_NORM or RESIDUAL_RMS_NORM; QUANTIZE; MOE_GATE_TOPK. The
// norm gets no launch of its own: each workgroup of the router's product computes the normalized row itself. Returns
// the number of packets planned. Returns 0 if these calls cannot be planned together (CudaJoin::plan).
std::size_t plan_normed_choices(Planner& planner, std::span<const OpCall> calls, std::size_t n);
void plan_moe_sum(Planner& planner, const OpCall& call);
void plan_moe_down_acc(Planner& planner, const OpCall& call);
void plan_shared_expert(Planner& planner, const OpCall& call);
// Plans MOE_DOWN_ACC, or MOE_SUM and the ADD of its rows; if present and possible also the RMS_NORM_FUSED_QKV of the
// sum. floats: absent, or the rows that QUANTIZE would turn into the x of MOE_DOWN_ACC, if the product does that itself
// (LinearWith). Returns the number of packets planned.
std::size_t plan_choice_sum(Planner& planner, std::span<const OpCall> calls, Place floats = {});

}  // namespace zinc_rt::ring
