// The arguments of an op's kernel, which it reads where its one pointer points, and the names of what is in them. POD,
// shared by host and device.
#pragma once

#include <stdint.h>

#include "kernels/common/operands.h"

namespace zinc_rt::rdna {

constexpr uint32_t kSymbolicTokens = 0xFFFFFFF0u, kSymbolicOutputs = 0xFFFFFFF1u;
// What kernels have room for: experts, rows of a recurrent state, values of a head of V and of a head that is rotated.
constexpr uint32_t kMostExperts = 1024, kMostStateRows = 128, kMostValues = 512, kMostRotated = 1024;
// Symbols of attention behind the op's: parts of a history, chunks of a head that there is room for, the type of quantized
// rows; of tiles the rows.
constexpr uint32_t kSymbolParts = 6, kSymbolChunks = 7, kSymbolQuantized = 8, kSymbolRows = 6;
// Threads of a workgroup of attention, and positions of a chunk.
constexpr uint32_t kChunk = 128;
constexpr uint32_t kMaxBindings = 14, kMaxSymbols = 9, kMaxPushWords = 7;

struct OpArgs {
  uint64_t buffers[kMaxBindings];  // the op's inputs, then its outputs; 0: absent
  uint64_t scratch;                // nothing in it outlives the packet
  uint32_t symbols[kMaxSymbols];   // in the order of the op's row in cpp/ring/amd/ops.cpp
  uint32_t push[kMaxPushWords];    // push::<Op>
  uint32_t n_tokens, n_outputs;

  // Sets the first buffers: all that have names in Names.
  template <class Names>
  void set_buffers(const typename Names::template Of<uint64_t>& values) {
    static_assert(sizeof(values) == Names::kCount * sizeof(uint64_t) && Names::kCount <= kMaxBindings);
    __builtin_memcpy(buffers, &values, sizeof(values));
  }
  template <class T>
  void set_constants(const T& value) {
    static_assert(sizeof(T) <= sizeof(push), "push constants of an op");
    __builtin_memcpy(push, &value, sizeof(value));
  }
};
static_assert(sizeof(OpArgs) == 192, "three lines of 64 bytes");

// The names of buffers of kernels that are a part of an op, or several ops.
namespace binding {
ZRT_NAMES(NormRows, x, w, added, z, floats, q8a32, q8a256, q16a256)
ZRT_NAMES(GluQuantize, gate, up, y, quantized)
ZRT_NAMES(SharedExpert, x, gate_inp, y, hidden)
ZRT_NAMES(ChoiceSum, y, ids, weights, expert_scale, z, hidden)
ZRT_NAMES(ChoiceItems, ids, items, order)
ZRT_NAMES(AttentionParts, q, kv_k, kv_v, pos, slot, page_table, y, quantized)
}  // namespace binding

// Constants of a norm; inverse: 1 / group.
struct NormConstants {
  float eps;
  uint32_t group;
  float inverse;
};

}  // namespace zinc_rt::rdna
