// Defines the weight format IQ3_XXS. A block has 256 weights: an f16 d, 64 points of a grid, and per 32 weights 4 times
// 7 signs and 4 bits s. A weight is w = ((d / 4) * (2 s + 1)) * q (decoded.h), and q is in -62..62.
#include <cstring>

#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/decoded.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/grids.h"
#include "kernels/cpu/quant/signs.h"

namespace zinc_rt::cpu {
namespace {

ZRT_INLINE void decode(const BlockIQ3_XXS& block, DecodedBlock& to) {
  to.d = f16_to_f32(block.d) * 0.25f;
  for (int s = 0; s < 8; ++s) {
    std::uint32_t rest;
    std::memcpy(&rest, block.signs_and_scales + 4 * s, sizeof(rest));
    set_scale(to, s, 2 * static_cast<int>(rest >> 28) + 1);
    const std::uint8_t* qs = block.qs + 8 * s;
    for (int i = 0; i < 4; ++i)
      copy_signed(kIq3XxsGrid.points[qs[2 * i]], kIq3XxsGrid.points[qs[2 * i + 1]], eight_signs(rest >> (7 * i)),
                  to.codes + 32 * s + 8 * i);
  }
}

}  // namespace
}  // namespace zinc_rt::cpu

ZRT_DECODED_FORMAT(IQ3_XXS)
