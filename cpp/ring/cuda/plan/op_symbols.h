// The symbols of each op (sizes such as k, and types) that the planner needs when it plans the op. Most are those of
// ring/gpu/symbols.h; cuda_symbol has those that only this tier uses.
// Thread rule: constants.
#pragma once

#include <string_view>

#include "kernels/cuda/op_args.h"
#include "ring/gpu/symbols.h"

namespace zinc_rt::ring {

namespace op_symbol = gpu::op_symbol;

namespace cuda_symbol {
ZRT_NAMES(Embed, v, d, dtype_table, s, fields)
ZRT_NAMES(SsmDeltaNet, n, k)
ZRT_NAMES(SsmScan, n, k, slots, attr_state_dim)
ZRT_NAMES(RequestState, s, fields)
}  // namespace cuda_symbol

// Whether a kernel's list of symbols begins with the rows and then the op's own symbols, as Planner::args_of_op lays
// them out.
constexpr bool has_symbols_of_op(std::string_view kernel, std::string_view op) {
  constexpr std::string_view kRows = "rows, ";
  return kernel.starts_with(kRows) && gpu::begins_with(kernel.substr(kRows.size()), op);
}
static_assert(has_symbols_of_op(cuda::symbol::Rope::kText, op_symbol::Rope::kText));
static_assert(has_symbols_of_op(cuda::symbol::KvWrite::kText, op_symbol::KvWrite::kText));
static_assert(has_symbols_of_op(cuda::symbol::RopeKvWrite::kText, op_symbol::RopeKvWrite::kText));
static_assert(has_symbols_of_op(cuda::symbol::Quantize::kText, op_symbol::Quantize::kText));
static_assert(has_symbols_of_op(cuda::symbol::RequestState::kText, cuda_symbol::RequestState::kText));
static_assert(has_symbols_of_op(cuda::symbol::VerifyK::kText, op_symbol::VerifyK::kText));
static_assert(has_symbols_of_op(cuda::symbol::MoeAddBias::kText, op_symbol::MoeAddBias::kText));
static_assert(has_symbols_of_op(cuda::symbol::GatherRows::kText, op_symbol::GatherRows::kText));

}  // namespace zinc_rt::ring
