// The patterns of packets that this tier runs as one, each with its plan. A new join is a row here and a kernel.
#include <algorithm>

#include "ring/cuda/plan/ops.h"

namespace zinc_rt::ring {
namespace {

using Calls = std::span<const OpCall>;

bool is_one_row(Calls calls) {
  return std::ranges::all_of(calls, [](const OpCall& c) { return c.rows_symbol == 1; });
}

// Returns what plan_linear has to do besides the LINEAR at calls[at]: add its rows to the residual, if the ADD after it
// is among the n packets.
LinearWith with_sum(Calls calls, std::size_t n, std::size_t at) {
  return {.residual = n > at + 1 ? calls[at + 1].buffers[operand::Add::x] : Place{}};
}

// Plans packets that end in the QUANTIZE calls[at], by calling plan(digits). If the LINEAR and ADD after it are among
// the n packets and the product reads the layout of digits, plan(digits) also writes that layout, and the product is
// planned too.
template <class Plan>
std::size_t quantize_and_multiply(Planner& planner, Calls calls, std::size_t n, std::size_t at, const Plan& plan) {
  const auto quantized = gpu::quantized(calls[at]);
  const bool is_read = n > at + 1 && has_tiles(quantized.type);
  const DigitRows digits =
      is_read ? digits_before(planner, calls[at + 1], quantized.k, gpu::linear_products(calls[at + 1]).matrices)
              : DigitRows{};
  plan(digits);
  if (digits.columns == 0) return at + 1;
  LinearWith with = with_sum(calls, n, at + 1);
  with.digits = digits;
  plan_linear_op(planner, calls[at + 1], with);
  return n;
}

// Plans the router. Its launch also sorts the choices in the order that the next products read.
std::size_t choices(Planner& planner, Calls calls, std::size_t) {
  plan_choices(planner, calls);
  return 1;
}

std::size_t linear_sum(Planner& planner, Calls calls, std::size_t n) {
  plan_linear_op(planner, calls[0], with_sum(calls, n, 0));
  return n;
}

// Plans the gate and up products of one row together with their GLU. The GLU's rows are written while other workgroups
// still read x.
std::size_t gate_up_glu(Planner& planner, Calls calls, std::size_t n) {
  const OpCall& call = calls[0];
  if (!is_one_row(calls.first(n))) return 0;
  const auto glu = gpu::glu(calls[1]);
  if (glu.act == push::kSwigluOai) return 0;  // only the kernels of GLU and MOE_SWIGLU compute it
  const GluOf of{glu.y, glu.act};
  if (const auto experts = expert_products(call)) {
    if (!can_glu(planner, call, experts->x_dtype, experts->matrices)) return 0;
    plan_experts_op(planner, call, &of);
    return n;
  }
  const auto products = gpu::normed_gate_up(call);
  if (!can_glu(planner, call, products.type_of(products.matrices[0]), products.matrices)) return 0;
  plan_gate_up(planner, call, &of);
  return n;
}

// Plans a product of one row that quantizes the row itself. It writes its result while other workgroups still read the
// row's floats.
std::size_t quantized_linear(Planner& planner, Calls calls, std::size_t n) {
  const auto s = calls[1].symbols<op_symbol::Linear>();
  if (!is_one_row(calls.first(n)) || !can_quantize_x(planner, calls[1], s.k, type_of(s.dtype_w))) return 0;
  LinearWith with = with_sum(calls, n, 1);
  with.floats = calls[0].buffers[operand::Quantize::x];
  plan_linear_op(planner, calls[1], with);
  return n;
}
std::size_t quantized_down(Planner& planner, Calls calls, std::size_t n) {
  const std::uint32_t f = calls[1].symbols<op_symbol::MoeDownAcc>().f;
  if (!is_one_row(calls.first(2)) || !can_quantize_x(planner, calls[1], f, DType::kCount)) return 0;
  return 1 + plan_choice_sum(planner, calls.subspan(1, n - 1), calls[0].buffers[operand::Quantize::x]);
}

std::size_t glu_quantize(Planner& planner, Calls calls, std::size_t n) {
  if (gpu::glu(calls[0]).act == push::kSwigluOai) return 0;  // only the kernels of GLU and MOE_SWIGLU compute it
  return quantize_and_multiply(planner, calls, n, 1, [&](const DigitRows& digits) {
    plan_glu_quantize(planner, calls[0], gpu::glu(calls[0]), gpu::quantized(calls[1]), digits);
  });
}

std::size_t norm_quantize(Planner& planner, Calls calls, std::size_t n) {
  if (!is_row_norm(calls[0])) return 0;
  plan_norm_quantize(planner, calls[0], calls[1]);
  return n;
}

std::size_t attention_quantize(Planner& planner, Calls calls, std::size_t n) {
  if (!can_quantize(planner, calls[0], calls[1])) return 0;
  return quantize_and_multiply(planner, calls, n, 1, [&](const DigitRows& digits) {
    plan_attention(planner, calls[0], &calls[1], nullptr, digits);
  });
}

std::size_t write_and_attend(Planner& planner, Calls calls, std::size_t n) {
  if (!can_write_cache(planner, calls[1], calls[0])) return 0;
  const bool is_quantized = n > 2 && can_quantize(planner, calls[1], calls[2]);
  const auto attend = [&](const DigitRows& digits) {
    plan_attention(planner, calls[1], is_quantized ? &calls[2] : nullptr, &calls[0], digits);
  };
  if (is_quantized) return quantize_and_multiply(planner, calls, n, 2, attend);
  attend({});
  return 2;
}

std::size_t stream_out_and_store(Planner& planner, Calls calls, std::size_t n) {
  plan_stream_out(planner, calls[0], &calls[1]);
  return n;
}

constexpr CudaJoin kJoins[] = {
    {"MOE_GATE_TOPK", choices},
    // For one token: the router's workgroups normalize the row themselves, after adding the previous product's result
    // to it.
    {"RMS_NORM x:h w:g y:row; QUANTIZE x:row y:q; MOE_GATE_TOPK x:row; keep h", plan_normed_choices},
    {"LINEAR y:p; RESIDUAL_RMS_NORM residual:h x:p y:row sum:h'; QUANTIZE x:row y:q; MOE_GATE_TOPK x:row; keep h'",
     plan_normed_choices},
    // The launch that sums the experts' rows also normalizes them for q, k and v of the next layer.
    {"MOE_DOWN_ACC hidden:h out:h'; RMS_NORM_FUSED_QKV x:h'",
     [](Planner& p, Calls calls, std::size_t n) { return plan_choice_sum(p, calls.first(n)); }},
    {"MOE_SUM z:s; ADD x:h y:s z:h'; ?RMS_NORM_FUSED_QKV x:h'",
     [](Planner& p, Calls calls, std::size_t n) { return plan_choice_sum(p, calls.first(n)); }},
    {"LINEAR y:p; ADD x:h y:p z:h'", linear_sum},
    {"RMS_NORM_FUSED_MLP_GATE_UP x:h gate:a up:b; GLU|MOE_SWIGLU gate:a up:b; keep h", gate_up_glu},
    {"MOE_GATE_UP x:h gate:a up:b; GLU|MOE_SWIGLU gate:a up:b; keep h", gate_up_glu},
    {"QUANTIZE x:row y:q; LINEAR x:q y:p; keep row; ?ADD x:h y:p z:h'", quantized_linear},
    {"QUANTIZE x:row y:q; MOE_DOWN_ACC x:q hidden:h out:h'; keep row; ?RMS_NORM_FUSED_QKV x:h'", quantized_down},
    {"GLU|MOE_SWIGLU gate:a up:b y:row; QUANTIZE x:row y:q; keep a b; ?LINEAR x:q y:p; ?ADD x:h y:p z:h'",
     glu_quantize},
    {"RMS_NORM x:h w:g y:row; QUANTIZE x:row y:q; keep h", norm_quantize},
    {"RESIDUAL_RMS_NORM residual:h x:p y:row sum:h'; QUANTIZE x:row y:q; keep p h'", norm_quantize},
    // q is kept, because some workgroups still read q while others already write quantized rows.
    {"FLASH_ATTN|FLASH_ATTN_BATCHED q:q y:row; QUANTIZE x:row y:n; keep q; ?LINEAR x:n y:p; ?ADD x:h y:p z:h'",
     attention_quantize},
    // The inputs are kept, because some workgroups write q while others still read the rows from which q and the cache
    // cells are computed. The merge writes the rows of attention when all workgroups are done.
    {"RMS_NORM_FUSED_ROPE_KV_WRITE q:a k:b v:c pos:i slot:s page_table:t q_out:q k_cache:k v_cache:v; "
     "FLASH_ATTN|FLASH_ATTN_BATCHED q:q kv_k:k kv_v:v pos:i slot:s page_table:t y:row; keep a b c; "
     "?QUANTIZE x:row y:n; ?LINEAR x:n y:p; ?ADD x:h y:p z:h'",
     write_and_attend},
    {"STREAM_OUT token:t slot:s; STORE_REQUEST_STATE slot:s value:t", stream_out_and_store},
};

}  // namespace

std::span<const CudaJoin> cuda_joins() {
  return kJoins;
}

}  // namespace zinc_rt::ring
