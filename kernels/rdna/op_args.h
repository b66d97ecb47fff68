// The arguments of kernels that compute an op, a part of an op or several ops, and the names of the buffers and symbols
// in them. A symbol is a number that the kernel needs, such as a dimension or a type. Shared by host and device (POD).
#pragma once

#include <stdint.h>

#include "kernels/common/operands.h"
#include "kernels/common/push.h"

namespace zinc_rt::rdna {

// Values of a symbol that stand for numbers of the step: its tokens, and its rows with logits.
constexpr uint32_t kSymbolicTokens = 0xFFFFFFF0u, kSymbolicOutputs = 0xFFFFFFF1u;
// The limits of the kernels: experts, rows of a recurrent state, values of a head of V, and values of a head of q or k.
constexpr uint32_t kMostExperts = 1024, kMostStateRows = 128, kMostValues = 512, kMostRotated = 1024;
// The threads of a workgroup of attention; also the positions of a chunk (rule 5 of docs/arithmetic.md).
constexpr uint32_t kChunk = 128;
constexpr uint32_t kMaxBindings = 14, kMaxSymbols = 9, kMaxPushWords = 7;

struct OpArgs {
  uint64_t buffers[kMaxBindings];  // addresses of the op's inputs, then of its outputs; 0: absent
  uint64_t scratch;                // address of memory for what is needed only while the packet runs
  uint32_t symbols[kMaxSymbols];   // named in namespace `symbol`
  uint32_t push[kMaxPushWords];    // push constants: push::<Op> or one of the structs below
  uint32_t n_tokens, n_outputs;

  // Set the first buffers or symbols, by their names in Names. The others keep their values.
  template <class Names>
  void set_buffers(const typename Names::template Of<uint64_t>& values) {
    static_assert(sizeof(values) == Names::kCount * sizeof(uint64_t) && Names::kCount <= kMaxBindings);
    __builtin_memcpy(buffers, &values, sizeof(values));
  }
  template <class Names>
  void set_symbols(const typename Names::template Of<uint32_t>& values) {
    static_assert(sizeof(values) == Names::kCount * sizeof(uint32_t) && Names::kCount <= kMaxSymbols);
    __builtin_memcpy(symbols, &values, sizeof(values));
  }
  template <class T>
  void set_constants(const T& value) {
    static_assert(sizeof(T) <= sizeof(push), "push constants of an op");
    __builtin_memcpy(push, &value, sizeof(value));
  }
};
static_assert(sizeof(OpArgs) == 192, "three lines of 64 bytes");

// The names of the buffers of kernels that compute a part of an op, or several ops. A kernel that computes one whole op
// uses the names operand::<Op> (kernels/common/operands.h).
namespace binding {
ZRT_NAMES(NormRows, x, w, added, z, floats, q8a32, q8a256, q16a256)
ZRT_NAMES(GluQuantize, gate, up, y, quantized)
ZRT_NAMES(SharedExpert, x, gate_inp, y, hidden)
ZRT_NAMES(ChoiceSum, y, ids, weights, expert_scale, z, hidden)
ZRT_NAMES(ChoiceItems, ids, items, order)
ZRT_NAMES(AttentionParts, q, kv_k, kv_v, pos, slot, page_table, sinks, y, quantized)
}  // namespace binding

// The names of symbols. A kernel's list begins with the symbols of its op, in the order of the op's row in
// cpp/ring/amd/ops.cpp, which asserts it.
namespace symbol {
ZRT_NAMES(Row, width)  // values of a row
ZRT_NAMES(Embed, v, d, s, fields)
ZRT_NAMES(Rope, d, p)
ZRT_NAMES(GateTopk, d, e)
ZRT_NAMES(SsmConv1d, c, n, k)
ZRT_NAMES(SsmDeltaNet, n, k)
ZRT_NAMES(PoolMean, d, n)
ZRT_NAMES(GatherRows, d, n)
ZRT_NAMES(StreamOut, n, entries)
ZRT_NAMES(RequestState, s, fields, n)
ZRT_NAMES(VerifyK, k, v)
ZRT_NAMES(KvWrite, nk, nv, m, dtype_kv_k, pitch_kv_k, pitch_kv_v)
ZRT_NAMES(RopeKvWrite, nq, nk, nv, m, p, dtype_kv_k, pitch_kv_k, pitch_kv_v)
// parts: how many workgroups share a history. chunks: how many records scratch memory holds per head.
ZRT_NAMES(Attention, m, dtype_kv_k, pitch_kv_k, pitch_kv_v, attr_v_head_dim, attr_head_dim, parts, chunks,
          quantized_dtype)
ZRT_NAMES(AttentionTiles, m, dtype_kv_k, pitch_kv_k, pitch_kv_v, attr_v_head_dim, attr_head_dim, rows)
ZRT_NAMES(Quantize, k, dtype_y)
ZRT_NAMES(ChoiceSum, d, k, e)
ZRT_NAMES(MoeAddBias, k, e, f)
// columns: the most choices of one item.
ZRT_NAMES(ChoiceItems, n, e, columns)
}  // namespace symbol

// Push constants of kernels that need more than their op's attributes. `inverse` is 1 / group, 1 / d or 1 / head_dim,
// computed by the host.
struct NormConstants {
  float eps;
  uint32_t group;
  float inverse;
};
struct LayerNormConstants {
  float eps, inverse;
};
struct RopeKvWriteConstants {
  push::RmsNormFusedRopeKvWrite of_op;
  float inverse;
};

}  // namespace zinc_rt::rdna
