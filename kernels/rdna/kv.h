// The paged cache of K and V: a page holds 16 tokens' cells.
#pragma once

#include "kernels/rdna/formats.h"

namespace zinc_rt::rdna {

ZRT_DEVICE uint32_t cache_bytes(uint32_t type, uint32_t n) {
  return type == kF32 ? n * 4 : type == kF16 ? n * 2 : n / 32 * (uint32_t)sizeof(BlockQ8_0);
}
ZRT_DEVICE uint8_t* cell(uint8_t* cache, const int32_t* pages, uint32_t pos, uint64_t pitch, uint32_t cell_bytes) {
  return cache + (uint64_t)pages[pos / 16] * pitch + pos % 16 * cell_bytes;
}
ZRT_DEVICE float cached(const uint8_t* at, uint32_t type, uint32_t i) {
  if (type == kF32) return ((const float*)at)[i];
  if (type == kF16) return f16_to_f32(((const uint16_t*)at)[i]);
  const auto& block = ((const BlockQ8_0*)at)[i / 32];
  return f16_to_f32(block.d) * (float)block.qs[i % 32];
}

}  // namespace zinc_rt::rdna
