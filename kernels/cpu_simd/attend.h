// Attention over pages (FLASH_ATTN, FLASH_ATTN_BATCHED) by instruction set, with the bits of
// kernels/cpu/flash_attn.cpp. Thread rule: pure functions; the tile's scratch is the caller's alone.
#pragma once

#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu_simd {

void attend_avx2(const cpu::AttendTile& tile);

}  // namespace zinc_rt::cpu_simd
