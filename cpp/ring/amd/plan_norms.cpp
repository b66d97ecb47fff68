// Norms, and QUANTIZE: kernels/rdna/rms_norm.hip, layer_norm.hip, quantize.hip.
#include <bit>

#include "kernels/common/push.h"
#include "ring/amd/plan.h"

namespace zinc_rt::ring {
namespace {

using ir::Op;
using Rows = rdna::binding::NormRows::Of<std::uint64_t>;

constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kBlocks = 8;  // of a piece of a row that is quantized

void norm_rows(AmdPlanner& p, std::uint32_t n, std::uint32_t d, const Rows& rows, float eps, std::uint32_t group) {
  rdna::OpArgs args{};
  args.set_buffers<rdna::binding::NormRows>(rows);
  args.symbols[0] = d;
  args.set_constants(rdna::NormConstants{eps, group, 1.0f / static_cast<float>(group)});
  p.launch("norm_rows", kThreads, n, 1, 1, args);
}

std::uint64_t& rows_of(Rows& rows, DType type) {
  switch (type) {
    case DType::kQ8A32: return rows.q8a32;
    case DType::kQ8A256: return rows.q8a256;
    case DType::kQ16A256: return rows.q16a256;
    default: return rows.floats;
  }
}

// The rows of a norm, without their results, and its group and eps.
struct Norm {
  Rows rows;
  float eps;
  std::uint32_t group;
  std::uint64_t y;
};
Norm norm_of(const AmdCall& c) {
  Norm norm{};
  if (c.op() == Op::RESIDUAL_RMS_NORM) {
    const auto o = c.operands<operand::ResidualRmsNorm>();
    norm = {{}, c.constants<push::ResidualRmsNorm>().eps, c.dim(amd_symbols::kNorm["dim:d"]), o.y};
    norm.rows.x = o.residual, norm.rows.w = o.w, norm.rows.added = o.x;
  } else if (c.op() == Op::SSM_GATED_NORM) {
    const auto o = c.operands<operand::SsmGatedNorm>();
    const auto push = c.constants<push::SsmGatedNorm>();
    norm = {{}, push.eps, push.group, o.y};
    norm.rows.x = o.x, norm.rows.w = o.w, norm.rows.z = o.z;
  } else {
    const auto o = c.operands<operand::RmsNorm>();
    const auto push = c.constants<push::RmsNorm>();
    norm = {{}, push.eps, push.group, o.y};
    norm.rows.x = o.x, norm.rows.w = o.w;
  }
  return norm;
}

// RMS_NORM of whole rows and their products. The rows are made in each type that a matrix wants.
void norm_products(AmdPlanner& p, const AmdCall& c, std::uint64_t x, std::uint64_t norm_w, float eps, bool is_quantized,
                   std::uint32_t d, const std::vector<AmdMatrix>& matrices) {
  Rows rows{};
  rows.x = x, rows.w = norm_w;
  const auto type_of = [&](const AmdMatrix& m) { return is_quantized ? act_dtype(m.dtype) : DType::kF32; };
  for (const AmdMatrix& m : matrices)
    if (auto& at = rows_of(rows, type_of(m)); at == 0) at = p.scratch(c.rows() * row_bytes(type_of(m), d));
  norm_rows(p, c.rows(), d, rows, eps, d);
  p.barrier();
  for (const DType type : {DType::kF32, DType::kQ8A32, DType::kQ8A256, DType::kQ16A256}) {
    std::vector<AmdMatrix> of_type;
    for (const AmdMatrix& m : matrices)
      if (type_of(m) == type) of_type.push_back(m);
    plan_products(p, {rows_of(rows, type), type, c.rows(), d}, of_type);
  }
}

}  // namespace

void plan_norm(AmdPlanner& p, const AmdCall& c) {
  Norm norm = norm_of(c);
  norm.rows.floats = norm.y;
  norm_rows(p, c.rows(), c.dim(amd_symbols::kNorm["dim:d"]), norm.rows, norm.eps, norm.group);
}

std::size_t plan_norm_quantize(AmdPlanner& p, std::span<const AmdCall> calls, std::size_t) {
  const std::uint32_t d = calls[0].dim(amd_symbols::kNorm["dim:d"]);
  Norm norm = norm_of(calls[0]);
  if (norm.group != d) return 0;
  norm.rows.floats = norm.y;
  rows_of(norm.rows, calls[1].dtype(amd_symbols::kQuantize["dtype:y"])) = calls[1].buffer(operand::Quantize::y);
  norm_rows(p, calls[0].rows(), d, norm.rows, norm.eps, norm.group);
  return 2;
}

void plan_qkv(AmdPlanner& p, const AmdCall& c) {
  constexpr auto kSymbols = amd_symbols::kQkv;
  const auto o = c.operands<operand::RmsNormFusedQkv>();
  const auto push = c.constants<push::RmsNormFusedQkv>();
  norm_products(p, c, o.x, o.norm_w, push.eps, push.quantize != 0, c.dim(kSymbols["dim:d"]),
                {{o.q_w, c.dtype(kSymbols["dtype:q_w"]), c.dim(kSymbols["dim:nq"]), o.q_b, o.q},
                 {o.k_w, c.dtype(kSymbols["dtype:k_w"]), c.dim(kSymbols["dim:nk"]), o.k_b, o.k},
                 {o.v_w, c.dtype(kSymbols["dtype:v_w"]), c.dim(kSymbols["dim:nv"]), o.v_b, o.v}});
}

void plan_gate_up(AmdPlanner& p, const AmdCall& c) {
  constexpr auto kSymbols = amd_symbols::kGateUp;
  const auto o = c.operands<operand::RmsNormFusedMlpGateUp>();
  const auto push = c.constants<push::RmsNormFusedMlpGateUp>();
  const std::uint32_t f = c.dim(kSymbols["dim:f"]);
  norm_products(p, c, o.x, o.norm_w, push.eps, push.quantize != 0, c.dim(kSymbols["dim:d"]),
                {{o.gate_w, c.dtype(kSymbols["dtype:gate_w"]), f, 0, o.gate},
                 {o.up_w, c.dtype(kSymbols["dtype:up_w"]), f, 0, o.up}});
}

void plan_layer_norm(AmdPlanner& p, const AmdCall& c) {
  auto args = c.args;
  args.push[1] = std::bit_cast<std::uint32_t>(1.0f / static_cast<float>(c.dim(0)));
  p.launch("layer_norm", kThreads, c.rows(), 1, 1, args);
}

void plan_quantized_rows(AmdPlanner& p, const AmdRows& to, std::uint64_t x) {
  rdna::OpArgs args{};
  args.set_buffers<operand::Quantize>({.x = x, .y = to.at});
  args.symbols[0] = to.k;
  args.symbols[1] = static_cast<std::uint32_t>(to.type);
  p.launch("quantize", kThreads, to.n, ceil_div(to.k / traits(to.type).block_elems, kBlocks), 1, args);
}

void plan_quantize(AmdPlanner& p, const AmdCall& c) {
  constexpr auto kSymbols = amd_symbols::kQuantize;
  const auto o = c.operands<operand::Quantize>();
  plan_quantized_rows(p, {o.y, c.dtype(kSymbols["dtype:y"]), c.rows(), c.dim(kSymbols["dim:k"])}, o.x);
}

void plan_glu_quantize(AmdPlanner& p, const AmdRows& to, const AmdGlu& glu) {
  rdna::OpArgs args{};
  args.set_buffers<rdna::binding::GluQuantize>({.gate = glu.gate, .up = glu.up, .y = glu.y, .quantized = to.at});
  args.symbols[0] = to.k;
  args.symbols[1] = static_cast<std::uint32_t>(to.type);
  args.set_constants(push::Glu{glu.act});
  p.launch("glu_quantize", kThreads, to.n, ceil_div(to.k / traits(to.type).block_elems, kBlocks), 1, args);
}

}  // namespace zinc_rt::ring
