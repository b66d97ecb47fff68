// The arguments of an op's kernel, passed by value, and the names by which host and device reach what is in them. POD,
// C++17.
#pragma once

#include <stdint.h>

#include "kernels/common/operands.h"

#if defined(__CUDACC__)
#define ZRT_CUDA_HD __host__ __device__ inline
#else
#include <string.h>
#define ZRT_CUDA_HD inline
#endif

namespace zinc_rt::cuda {

#if defined(__CUDACC__)
template <class T>
using Address = T*;
#else
// On the host arguments are planned before anything has an address. A place says which operand of a packet an argument
// is, or which memory that the plan asks for. cpp/ring/cuda/cuda_graph.cpp puts the address where the place was.
struct Place {
  uint64_t word = 0;  // 0: absent
  explicit operator bool() const { return word != 0; }
  friend bool operator==(const Place&, const Place&) = default;
};
template <class T>
using Address = Place;
static_assert(sizeof(Place) == sizeof(void*), "a place of an address");
#endif

// The numbers of a step, in device memory: written by step_begin, read by every kernel, so that a graph that was built
// once serves all steps of its bucket.
struct StepHeader {
  uint32_t n_tokens, n_outputs;
};

constexpr uint32_t kSymbolicTokens = 0xFFFFFFF0u, kSymbolicOutputs = 0xFFFFFFF1u, kAbsent = 0xFFFFFFFFu;
constexpr uint32_t kMaxBindings = 15, kMaxSymbols = 13, kMaxPushWords = 8;

#if defined(__CUDACC__)
// A dimension: a number, or that of the step.
__device__ inline uint32_t dim_of(uint32_t symbol, const StepHeader* step) {
  if (symbol == kSymbolicTokens) return step->n_tokens;
  return symbol == kSymbolicOutputs ? step->n_outputs : symbol;
}
#endif

// An op's kernel. Its buffers are named in namespace binding below, its symbols in namespace symbol, rows first; push
// constants are as in docs/abi.md.
struct OpArgs {
  Address<void> buffers[kMaxBindings];
  uint32_t symbols[kMaxSymbols];
  uint32_t push[kMaxPushWords];
  Address<const StepHeader> step;
  Address<void> scratch;  // of the launch; nothing in it outlives the packet
  // Not 0: positions, slots and the page table are there before the kernel begins: step_begin has copied them.
  uint32_t has_places;

#if defined(__CUDACC__)
  template <class T>
  __device__ T* buffer(int i) const {
    return static_cast<T*>(buffers[i]);
  }
  template <class T>
  __device__ T constants() const {
    static_assert(sizeof(T) <= sizeof(push), "push constants of an op");
    return *reinterpret_cast<const T*>(push);
  }
  __device__ uint32_t dim(int i) const { return dim_of(symbols[i], step); }
#else
  // Sets the first buffers or symbols: all that have names in Names.
  template <class Names>
  void set_buffers(const typename Names::template Of<Place>& values) {
    static_assert(sizeof(values) == Names::kCount * sizeof(Place) && Names::kCount <= kMaxBindings);
    memcpy(static_cast<void*>(buffers), &values, sizeof(values));
  }
  template <class Names>
  void set_symbols(const typename Names::template Of<uint32_t>& values) {
    static_assert(sizeof(values) == Names::kCount * sizeof(uint32_t) && Names::kCount <= kMaxSymbols);
    memcpy(symbols, &values, sizeof(values));
  }
  template <class T>
  void set_constants(const T& value) {
    static_assert(sizeof(T) <= sizeof(push), "push constants of an op");
    memcpy(push, &value, sizeof(value));
  }
#endif
};

// The names of buffers. A kernel that is not here has the operands of its op (kernels/common/operands.h). Each kernel
// says which may be null.
namespace binding {
using namespace zinc_rt::operand;
// FLASH_ATTN and FLASH_ATTN_BATCHED, with the QUANTIZE of their rows and these as digit_rows.cu makes them.
ZRT_NAMES(Attention, q, kv_k, kv_v, pos, slot, page_table, sinks, y, quantized, digits)
// MOE_GATE_TOPK, with its choices sorted by expert; those alone.
ZRT_NAMES(GateTopk, x, gate_w, bias, choice_bias, logits, ids, weights, items, order)
ZRT_NAMES(MoeGroup, ids, items, order)
// The sum over each token's choices, by itself or in front of a norm of rows.
ZRT_NAMES(ChoiceSum, choices_y, ids, weights, expert_scale, z, hidden)
ZRT_NAMES(NormRows, x, w, floats, q8a32, q8a256, q16a256, added, digits, fixed_tiles, choices_y, ids, weights,
          expert_scale, z)
ZRT_NAMES(GluQuantize, gate, up, y, quantized, digits)
ZRT_NAMES(SharedExpert, x, gate_inp, y, hidden)
// STREAM_OUT, with the slot table in which the STORE_REQUEST_STATE of the same rows stores the tokens; null: no table.
ZRT_NAMES(StreamOut, token, slot, ring, out, slots)
}  // namespace binding

// The names of symbols, rows first. Where a kernel has the symbols of its op behind the rows
// (cpp/ring/cuda/plan/op_symbols.h), they have the same names.
namespace symbol {
ZRT_NAMES(Rows, rows)
ZRT_NAMES(Row, rows, width)  // values of a row
ZRT_NAMES(Embed, rows, v, d, s, fields)
ZRT_NAMES(Rope, rows, d, p)
ZRT_NAMES(KvWrite, rows, nk, nv, m, dtype_kv_k, pitch_kv_k, pitch_kv_v)
// v_part: values of v that a warp has. q_parts, k_parts: of a row, each of whole heads, where heads are larger than a
// warp's.
ZRT_NAMES(RopeKvWrite, rows, nq, nk, nv, m, p, dtype_kv_k, pitch_kv_k, pitch_kv_v, v_part, q_parts, k_parts)
// chunks: records of a head that there is room for; floats: of a record. parts_at_once: workgroups of a token and kv
// head that run side by side. group: heads of a kv head. run_tokens: tokens of a run's tile at most, 0: there are no
// runs. is_runs_only: only tokens of runs have left records.
ZRT_NAMES(Attention, rows, m, dtype_kv_k, pitch_kv_k, pitch_kv_v, chunks, floats, quantized_dtype, parts_at_once, group,
          run_tokens, is_runs_only, digit_columns)
// flash_attn_integer_runs.cu. run_tokens: tokens of a run at most, a power of two. least_workgroups: with work, for which
// runs are made shorter.
ZRT_NAMES(AttentionRuns, rows, m, dtype_kv_k, pitch_kv_k, pitch_kv_v, chunks, floats, quantized_dtype, least_workgroups,
          group, run_tokens, is_runs_only, digit_columns)
// tile_tokens: tokens of a tile at most. tiles_at_once: tiles that run side by side.
ZRT_NAMES(AttentionTiles, rows, m, dtype_kv_k, pitch_kv_k, pitch_kv_v, tile_tokens, tiles_at_once)
// columns: choices of an item at most.
ZRT_NAMES(GateTopk, rows, e, columns)
ZRT_NAMES(MoeGroup, rows, k, e, columns)
ZRT_NAMES(MoeAddBias, rows, k, e, f)
ZRT_NAMES(ChoiceSum, rows, d, k, e)
ZRT_NAMES(NormRows, rows, d, digit_columns, fixed_columns, k, e)
ZRT_NAMES(Quantize, rows, k, dtype_y)
ZRT_NAMES(GluQuantize, rows, k, dtype_y, digit_columns)
ZRT_NAMES(SsmConv1d, rows, c, k)
ZRT_NAMES(SsmDeltaNet, rows, k)
ZRT_NAMES(PoolMean, rows, d)
ZRT_NAMES(StreamOut, rows, entries, s, fields)
ZRT_NAMES(RequestState, rows, s, fields)
ZRT_NAMES(VerifyK, rows, k, v)
ZRT_NAMES(GatherRows, rows, d, n)

// What kernels of tokens and of tiles have in common (attention.cuh, flash_attn_tile.cuh).
static_assert(operand::is_same_place(Attention::m, AttentionTiles::m) &&
                  operand::is_same_place(Attention::pitch_kv_k, AttentionTiles::pitch_kv_k) &&
                  operand::is_same_place(Attention::pitch_kv_v, AttentionTiles::pitch_kv_v),
              "the cache's symbols");
}  // namespace symbol

}  // namespace zinc_rt::cuda
