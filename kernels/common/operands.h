// Names of the operands of each op: inputs first, then results. The order is that of the op's rule in
// cpp/ir/op_rules.cpp, which asserts at compile time that both lists are equal. For the op LINEAR there are:
//   operand::Linear::w           the index of the operand w among the op's buffers
//   operand::Linear::Of<T>       a struct with a T for each operand: Of<void*>{x, w, bias, y}, Of<BufferId>{...}
//   operand::Linear::kCount      the number of operands
// Shared by host and device (C++17, POD).
#pragma once

namespace zinc_rt::operand {

// Returns whether names of two structs have the same index, for static_assert. It is a function because compilers warn
// of comparing enumerators of different enums; its arguments are numbers.
constexpr bool is_same_place(unsigned a, unsigned b) {
  return a == b;
}

}  // namespace zinc_rt::operand

// Declares a struct `Name` for a list of names: an enumerator per name, which is its index in the list, and Of<T>,
// which has a member of type T per name.
#define ZRT_NAMES(Name, ...)                                     \
  struct Name {                                                  \
    enum : unsigned { __VA_ARGS__, kCount };                     \
    template <class T>                                           \
    struct Of {                                                  \
      T __VA_ARGS__;                                             \
    };                                                           \
    static_assert(sizeof(Of<char>) == kCount, "a value a name"); \
    static constexpr char kText[] = #__VA_ARGS__;                \
  };

// The table of all ops: X(OPCODE, Name, operands...). BARRIER is missing, because it has no operands.
#define ZRT_OPERANDS(X)                                                                                           \
  X(EMBED, Embed, ids, table, slot, slots, y)                                                                     \
  X(RMS_NORM, RmsNorm, x, w, y)                                                                                   \
  X(RMS_NORM_FUSED_QKV, RmsNormFusedQkv, x, norm_w, q_w, k_w, v_w, q_b, k_b, v_b, q, k, v)                        \
  X(RMS_NORM_FUSED_MLP_GATE_UP, RmsNormFusedMlpGateUp, x, norm_w, gate_w, up_w, gate, up)                         \
  X(ROPE, Rope, x, pos, table, y)                                                                                 \
  X(RMS_NORM_FUSED_ROPE_KV_WRITE, RmsNormFusedRopeKvWrite, q, k, v, q_norm, k_norm, pos, slot, table, page_table, \
    kv_k, kv_v, q_out, k_cache, v_cache)                                                                          \
  X(FLASH_ATTN, FlashAttn, q, kv_k, kv_v, pos, slot, page_table, sinks, y)                                        \
  X(FLASH_ATTN_BATCHED, FlashAttnBatched, q, kv_k, kv_v, pos, slot, page_table, sinks, y)                         \
  X(MOE_GATE_TOPK, MoeGateTopk, x, gate_w, bias, choice_bias, logits, ids, weights)                               \
  X(MOE_GATE_UP, MoeGateUp, x, gate_w, up_w, ids, gate, up)                                                       \
  X(MOE_SWIGLU, MoeSwiglu, gate, up, y)                                                                           \
  X(MOE_DOWN_ACC, MoeDownAcc, x, down_w, ids, weights, expert_scale, hidden, out)                                 \
  X(SHARED_EXPERT, SharedExpert, x, gate_w, up_w, down_w, gate_inp, hidden, out)                                  \
  X(SSM_CONV1D, SsmConv1d, x, conv_w, bias, pos, slot, state, runs, saved, y, next, kept)                         \
  X(SSM_DELTA_NET, SsmDeltaNet, x, beta, alpha, a, dt, pos, slot, state, runs, saved, y, next, kept)              \
  X(SSM_GATED_NORM, SsmGatedNorm, x, z, w, y)                                                                     \
  X(RESIDUAL_RMS_NORM, ResidualRmsNorm, residual, x, w, y, sum)                                                   \
  X(LM_HEAD, LmHead, x, w, logits)                                                                                \
  X(ARGMAX, Argmax, logits, token)                                                                                \
  X(SAMPLE, Sample, logits, params, history, bias, mask, token)                                                   \
  X(KV_WRITE_BATCHED, KvWriteBatched, k, v, pos, slot, page_table, kv_k, kv_v, k_cache, v_cache)                  \
  X(MATMUL_WMMA_F16, MatmulWmmaF16, a, b, c)                                                                      \
  X(MATMUL_WMMA_Q4K, MatmulWmmaQ4K, a, b, c)                                                                      \
  X(STREAM_OUT, StreamOut, token, slot, ring, out)                                                                \
  X(LOAD_REQUEST_STATE, LoadRequestState, slots, slot, value)                                                     \
  X(STORE_REQUEST_STATE, StoreRequestState, slots, slot, value, out)                                              \
  X(VERIFY_K, VerifyK, draft, logits, accept_len)                                                                 \
  X(LINEAR, Linear, x, w, bias, y)                                                                                \
  X(QUANTIZE, Quantize, x, y)                                                                                     \
  X(ADD, Add, x, y, z)                                                                                            \
  X(GLU, Glu, gate, up, y)                                                                                        \
  X(SCALE, Scale, x, w, y)                                                                                        \
  X(SOFTCAP, Softcap, x, y)                                                                                       \
  X(SIGMOID_MUL, SigmoidMul, x, gate, y)                                                                          \
  X(GATHER_ROWS, GatherRows, x, rows, y)                                                                          \
  X(SLICE, Slice, x, y)                                                                                           \
  X(MOE_LINEAR, MoeLinear, x, w, ids, y)                                                                          \
  X(MOE_SUM, MoeSum, y, ids, weights, expert_scale, z)                                                            \
  X(COPY_ROWS, CopyRows, from, to, rows, next)                                                                    \
  X(POOL_MEAN, PoolMean, x, pos, slot, sum, y, next)                                                              \
  X(LAYER_NORM, LayerNorm, x, w, b, y)                                                                            \
  X(GELU, Gelu, x, y)                                                                                             \
  X(LOGPROBS, Logprobs, logits, token, params, stats)                                                             \
  X(MOE_ADD_BIAS, MoeAddBias, y, ids, bias, out)                                                                  \
  X(LINEAR_HEADS, LinearHeads, x, w, y)                                                                           \
  X(CONCAT, Concat, a, b, y)                                                                                      \
  X(MOE_SCALE, MoeScale, x, ids, expert_scale, y)                                                                 \
  X(MUL, Mul, x, y, z)                                                                                            \
  X(SSM_SCAN, SsmScan, x, dt, a, dt_bias, d, pos, slot, state, runs, saved, y, next, kept)                        \
  X(RELU2, Relu2, x, y)

namespace zinc_rt::operand {

#define ZRT_OPERAND_NAMES(opcode, Name, ...) ZRT_NAMES(Name, __VA_ARGS__)
ZRT_OPERANDS(ZRT_OPERAND_NAMES)
#undef ZRT_OPERAND_NAMES

}  // namespace zinc_rt::operand
