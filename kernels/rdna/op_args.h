// The arguments of an op's kernel, which it reads where its one pointer points. POD, shared by host and device.
#pragma once

#include <stdint.h>

namespace zinc_rt::rdna {

constexpr uint32_t kSymbolicTokens = 0xFFFFFFF0u, kSymbolicOutputs = 0xFFFFFFF1u;
constexpr uint32_t kMaxBindings = 14, kMaxSymbols = 8, kMaxPushWords = 7;

struct OpArgs {
  uint64_t buffers[kMaxBindings];  // the op's inputs, then its outputs; 0: absent
  uint64_t scratch;                // nothing in it outlives the packet
  uint32_t symbols[kMaxSymbols];   // in the order of the op's row in cpp/ring/amd/ops.cpp
  uint32_t push[kMaxPushWords];    // push::<Op>
  uint32_t n_tokens, n_outputs;
  uint32_t pad;
};
static_assert(sizeof(OpArgs) == 192, "three lines of 64 bytes");

}  // namespace zinc_rt::rdna
