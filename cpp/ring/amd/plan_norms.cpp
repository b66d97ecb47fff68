// Plans norms and QUANTIZE, whose kernels are kernels/rdna/rms_norm.hip, layer_norm.hip and quantize.hip.
#include "ring/amd/plan.h"

namespace zinc_rt::ring {
namespace {

using Rows = rdna::binding::NormRows::Of<std::uint64_t>;

constexpr std::uint32_t kRowThreads = 256;
constexpr std::uint32_t kBlocks = 8;  // quantization blocks in the part of a row that one workgroup quantizes

void norm_rows(AmdPlanner& p, std::uint32_t n, std::uint32_t d, const Rows& rows, float eps, std::uint32_t group) {
  rdna::OpArgs args{};
  args.set_buffers<rdna::binding::NormRows>(rows);
  args.set_symbols<rdna::symbol::Row>({.width = d});
  args.set_constants(rdna::NormConstants{eps, group, 1.0f / static_cast<float>(group)});
  p.launch("norm_rows", kRowThreads, n, 1, 1, args);
}

std::uint64_t& rows_of(Rows& rows, DType type) {
  switch (type) {
    case DType::kQ8A32: return rows.q8a32;
    case DType::kQ8A256: return rows.q8a256;
    case DType::kQ16A256: return rows.q16a256;
    default: return rows.floats;
  }
}

// Returns the kernel's argument for a norm whose result is written as floats.
Rows rows_of(const gpu::RowNorm<std::uint64_t>& norm) {
  Rows rows{};
  rows.x = norm.x, rows.w = norm.w, rows.added = norm.added, rows.z = norm.z, rows.floats = norm.y;
  return rows;
}

// Plans RMS_NORM of whole rows, and the products that read the normalized rows. The normalized rows are written once in
// each type that a matrix reads.
void norm_products(AmdPlanner& p, std::uint32_t n, const gpu::NormedProducts<std::uint64_t>& products) {
  Rows rows{};
  rows.x = products.x, rows.w = products.norm_w;
  const std::uint32_t d = products.d;
  for (const AmdMatrix& m : products.matrices)
    if (auto& at = rows_of(rows, products.type_of(m)); at == 0) at = p.scratch(n * row_bytes(products.type_of(m), d));
  norm_rows(p, n, d, rows, products.eps, d);
  p.barrier();
  for (const DType type : {DType::kF32, DType::kQ8A32, DType::kQ8A256, DType::kQ16A256}) {
    AmdProducts of_type{rows_of(rows, type), type, d, {}};
    for (const AmdMatrix& m : products.matrices)
      if (products.type_of(m) == type) of_type.matrices.push_back(m);
    plan_products(p, n, of_type);
  }
}

std::uint32_t pieces_of(const AmdQuantized& rows) {
  return ceil_div(rows.k / traits(rows.type).block_elems, kBlocks);
}

}  // namespace

void plan_norm(AmdPlanner& p, const AmdCall& c) {
  const auto norm = gpu::row_norm(c);
  norm_rows(p, c.rows(), norm.d, rows_of(norm), norm.eps, norm.group);
}

std::size_t plan_norm_quantize(AmdPlanner& p, std::span<const AmdCall> calls, std::size_t) {
  const auto norm = gpu::row_norm(calls[0]);
  if (norm.group != norm.d) return 0;
  const AmdQuantized quantized = gpu::quantized(calls[1]);
  Rows rows = rows_of(norm);
  rows_of(rows, quantized.type) = quantized.y;
  norm_rows(p, calls[0].rows(), norm.d, rows, norm.eps, norm.group);
  return 2;
}

void plan_qkv(AmdPlanner& p, const AmdCall& c) {
  norm_products(p, c.rows(), gpu::normed_qkv(c));
}

void plan_gate_up(AmdPlanner& p, const AmdCall& c) {
  norm_products(p, c.rows(), gpu::normed_gate_up(c));
}

void plan_layer_norm(AmdPlanner& p, const AmdCall& c) {
  auto args = p.args(c);
  const float d = static_cast<float>(c.symbols<op_symbol::Norm>().d);
  args.set_constants(rdna::LayerNormConstants{c.constants<push::LayerNorm>().eps, 1.0f / d});
  p.launch("layer_norm", kRowThreads, c.rows(), 1, 1, args);
}

void plan_quantized_rows(AmdPlanner& p, std::uint32_t n, const AmdQuantized& rows) {
  rdna::OpArgs args{};
  args.set_buffers<operand::Quantize>({.x = rows.x, .y = rows.y});
  args.set_symbols<rdna::symbol::Quantize>({.k = rows.k, .dtype_y = static_cast<std::uint32_t>(rows.type)});
  p.launch("quantize", kRowThreads, n, pieces_of(rows), 1, args);
}

void plan_quantize(AmdPlanner& p, const AmdCall& c) {
  plan_quantized_rows(p, c.rows(), gpu::quantized(c));
}

void plan_glu_quantized(AmdPlanner& p, std::uint32_t n, const gpu::Glu<std::uint64_t>& glu, const AmdQuantized& rows) {
  rdna::OpArgs args{};
  args.set_buffers<rdna::binding::GluQuantize>({.gate = glu.gate, .up = glu.up, .y = glu.y, .quantized = rows.y});
  args.set_symbols<rdna::symbol::Quantize>({.k = rows.k, .dtype_y = static_cast<std::uint32_t>(rows.type)});
  args.set_constants(push::Glu{glu.act});
  p.launch("glu_quantize", kRowThreads, n, pieces_of(rows), 1, args);
}

std::size_t plan_glu_quantize(AmdPlanner& p, std::span<const AmdCall> calls, std::size_t) {
  plan_glu_quantized(p, calls[1].rows(), gpu::glu(calls[0]), gpu::quantized(calls[1]));
  return 2;
}

}  // namespace zinc_rt::ring
