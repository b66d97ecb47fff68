// Op lists the opcodes of the IR. Serialized graphs store an opcode's number, so add new ones at the end and never
// renumber. The shapes, types and attributes of an op are in ir/op_rules.cpp. Its meaning and the order of every sum
// are in kernels/cpu/<op>.cpp. docs/ir.md has a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace zinc_rt::ir {

// Lists all ops as X(name, category), so that one list defines the enum and the names.
#define ZRT_OPCODES(X)                       \
  X(EMBED, "input")                          \
  X(RMS_NORM, "norm")                        \
  X(RMS_NORM_FUSED_QKV, "norm+proj")         \
  X(RMS_NORM_FUSED_MLP_GATE_UP, "norm+proj") \
  X(ROPE, "attn")                            \
  X(RMS_NORM_FUSED_ROPE_KV_WRITE, "attn")    \
  X(FLASH_ATTN, "attn")                      \
  X(FLASH_ATTN_BATCHED, "attn")              \
  X(MOE_GATE_TOPK, "moe")                    \
  X(MOE_GATE_UP, "moe")                      \
  X(MOE_SWIGLU, "act")                       \
  X(MOE_DOWN_ACC, "moe")                     \
  X(SHARED_EXPERT, "moe")                    \
  X(SSM_CONV1D, "ssm")                       \
  X(SSM_DELTA_NET, "ssm")                    \
  X(SSM_GATED_NORM, "ssm")                   \
  X(RESIDUAL_RMS_NORM, "residual+norm")      \
  X(LM_HEAD, "output")                       \
  X(ARGMAX, "sample")                        \
  X(SAMPLE, "sample")                        \
  X(KV_WRITE_BATCHED, "kv")                  \
  X(MATMUL_WMMA_F16, "matmul")               \
  X(MATMUL_WMMA_Q4K, "matmul")               \
  X(BARRIER, "sync")                         \
  X(STREAM_OUT, "output")                    \
  X(LOAD_REQUEST_STATE, "sched")             \
  X(STORE_REQUEST_STATE, "sched")            \
  X(VERIFY_K, "spec")                        \
  X(LINEAR, "proj")                          \
  X(QUANTIZE, "act")                         \
  X(ADD, "residual")                         \
  X(GLU, "act")                              \
  X(SCALE, "act")                            \
  X(SOFTCAP, "act")                          \
  X(SIGMOID_MUL, "act")                      \
  X(GATHER_ROWS, "output")                   \
  X(SLICE, "data")                           \
  X(MOE_LINEAR, "moe")                       \
  X(MOE_SUM, "moe")                          \
  X(COPY_ROWS, "data")                       \
  X(POOL_MEAN, "output")                     \
  X(LAYER_NORM, "norm")                      \
  X(GELU, "act")                             \
  X(LOGPROBS, "output")                      \
  X(MOE_ADD_BIAS, "moe")                     \
  X(LINEAR_HEADS, "proj")                    \
  X(CONCAT, "data")                          \
  X(MOE_SCALE, "moe")                        \
  X(MUL, "act")                              \
  X(SSM_SCAN, "ssm")                         \
  X(RELU2, "act")

enum class Op : std::uint16_t {
#define ZRT_OP_ENUM(name, category) name,
  ZRT_OPCODES(ZRT_OP_ENUM)
#undef ZRT_OP_ENUM
      kCount
};

inline constexpr std::size_t kOpCount = static_cast<std::size_t>(Op::kCount);

std::string_view to_string(Op op);  // the name as in the enum: "RMS_NORM"
std::string_view category(Op op);   // the second column of the list above, for tables: "norm"
std::optional<Op> parse_op(std::string_view name);
// Returns whether the op has no kernel, because the ring itself executes it.
inline bool is_host_only(Op op) {
  return op == Op::BARRIER;
}

}  // namespace zinc_rt::ir
