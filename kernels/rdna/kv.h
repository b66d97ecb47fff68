// Reads KV caches of f32, f16 and q8_0. A page holds the cells of 16 tokens. A cell is one token's row of values, of
// all kv heads.
#pragma once

#include "kernels/rdna/formats.h"

namespace zinc_rt::rdna {

// Returns the bytes of n cached values.
ZRT_DEVICE uint32_t cache_bytes(uint32_t type, uint32_t n) {
  return type == kF32 ? n * 4 : type == kF16 ? n * 2 : n / 32 * (uint32_t)sizeof(BlockQ8_0);
}
// Returns the cell of position pos. pages: the slot's row of the page table; pitch: the bytes from one page to the
// next.
ZRT_DEVICE uint8_t* cell(uint8_t* cache, const int32_t* pages, uint32_t pos, uint64_t pitch, uint32_t cell_bytes) {
  return cache + (uint64_t)pages[pos / 16] * pitch + pos % 16 * cell_bytes;
}
// Returns value i of the cached values at `at`, converted to float.
ZRT_DEVICE float cached(const uint8_t* at, uint32_t type, uint32_t i) {
  if (type == kF32) return ((const float*)at)[i];
  if (type == kF16) return f16_to_f32(((const uint16_t*)at)[i]);
  const auto& block = ((const BlockQ8_0*)at)[i / 32];
  return f16_to_f32(block.d) * (float)block.qs[i % 32];
}

}  // namespace zinc_rt::rdna
