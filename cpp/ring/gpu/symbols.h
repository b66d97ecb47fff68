// Names the symbols (shapes, types, pitches) that are baked into the kernels of GPU tiers:
//   op_symbol::Linear::Of<std::uint32_t>   holds the number of each symbol (Call::symbols)
//   symbols_of<op_symbol::Linear>()        returns their names in the tier's table (kernel/kernel_table.h)
// A name here is short for a name in the table: k for dim:k, dtype_w for dtype:w, pitch_w for pitch:w, attr_head_dim
// for attr:head_dim. If a tier's kernel needs other symbols, they are named in that tier's folder.
// Thread rule: constants, and lists that are made once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/common/operands.h"

namespace zinc_rt::ring::gpu {

namespace op_symbol {
ZRT_NAMES(Norm, d)  // used by RMS_NORM, RESIDUAL_RMS_NORM, LAYER_NORM; SSM_GATED_NORM has GatedNorm
ZRT_NAMES(Qkv, d, nq, nk, nv, dtype_q_w, dtype_k_w, dtype_v_w)
ZRT_NAMES(GateUp, d, f, dtype_gate_w, dtype_up_w)
ZRT_NAMES(Rope, d, p)
ZRT_NAMES(RopeKvWrite, nq, nk, nv, m, p, dtype_kv_k, pitch_kv_k, pitch_kv_v)
ZRT_NAMES(KvWrite, nk, nv, m, dtype_kv_k, pitch_kv_k, pitch_kv_v)
ZRT_NAMES(FlashAttn, m, dtype_kv_k, pitch_kv_k, pitch_kv_v)
ZRT_NAMES(GateTopk, d, e, dtype_gate_w, dtype_x)
ZRT_NAMES(MoeGateUp, d, e, f, k, dtype_gate_w, dtype_up_w, dtype_x, pitch_gate_w, pitch_up_w)
ZRT_NAMES(MoeLinear, d, e, f, k, dtype_w, dtype_x, pitch_w)
ZRT_NAMES(MoeDownAcc, f, e, d, k, dtype_down_w, dtype_x, pitch_down_w)
ZRT_NAMES(MoeSum, d, k, e)
ZRT_NAMES(MoeAddBias, k, e, f)
ZRT_NAMES(SharedExpert, d, f, dtype_gate_w, dtype_up_w, dtype_down_w)
ZRT_NAMES(SsmConv1d, c, n, k, biases, attr_act)
ZRT_NAMES(GatedNorm, d, w_groups, attr_gate_first)
ZRT_NAMES(Linear, k, m, dtype_w, dtype_x)
ZRT_NAMES(LmHead, d, v, dtype_w, dtype_x)
ZRT_NAMES(MatmulQ4K, k, m)
ZRT_NAMES(Quantize, k, dtype_y)
ZRT_NAMES(Row, d)  // used by ADD, MUL, SCALE, SOFTCAP, SIGMOID_MUL
ZRT_NAMES(Glu, f)  // used by GLU, MOE_SWIGLU, GELU, RELU2
ZRT_NAMES(GatherRows, d, n)
ZRT_NAMES(CopyRows, w)
ZRT_NAMES(PoolMean, d, n)
ZRT_NAMES(Logits, v)  // used by ARGMAX, SAMPLE, LOGPROBS
ZRT_NAMES(VerifyK, k, v)
ZRT_NAMES(StreamOut, n, entries)

// Plans of norms read GatedNorm by the names of Norm.
static_assert(operand::is_same_place(Norm::d, GatedNorm::d));
// LM_HEAD is planned by the names of LINEAR, so their symbols must have the same positions.
static_assert(operand::is_same_place(Linear::k, LmHead::d) && operand::is_same_place(Linear::m, LmHead::v) &&
              operand::is_same_place(Linear::dtype_w, LmHead::dtype_w) &&
              operand::is_same_place(Linear::dtype_x, LmHead::dtype_x));
}  // namespace op_symbol

// Converts a list of names, such as "k, dtype_w", to the table's names "dim:k", "dtype:w".
std::vector<std::string> table_symbols(std::string_view names);

template <class Names>
std::vector<const char*> symbols_of() {
  static const std::vector<std::string> kNames = table_symbols(Names::kText);
  std::vector<const char*> list;
  for (const std::string& name : kNames) list.push_back(name.c_str());
  return list;
}

// Returns whether the list of names `all` begins with the names `first` (both as in kText). If so, a kernel with the
// symbols `all` finds an op's symbols at the op's positions.
constexpr bool begins_with(std::string_view all, std::string_view first) {
  return all.starts_with(first) && (all.size() == first.size() || all[first.size()] == ',');
}

}  // namespace zinc_rt::ring::gpu
