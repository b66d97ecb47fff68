// Defines the weight format IQ2_XXS. A block has 256 weights: an f16 d, and per 32 weights 8 bytes, which are 4 points
// of a grid, 4 times 7 signs, and 4 bits s. A weight is w = ((d / 8) * (2 s + 1)) * q (decoded.h), and q is in -43..43.
#include <cstring>

#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/decoded.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/grids.h"
#include "kernels/cpu/quant/signs.h"

namespace zinc_rt::cpu {
namespace {

ZRT_INLINE void decode(const BlockIQ2_XXS& block, DecodedBlock& to) {
  to.d = f16_to_f32(block.d) * 0.125f;
  for (int s = 0; s < 8; ++s) {
    std::uint32_t rest;
    std::memcpy(&rest, block.qs + 8 * s + 4, sizeof(rest));
    set_scale(to, s, 2 * static_cast<int>(rest >> 28) + 1);
    for (int i = 0; i < 4; ++i)
      copy_signed(kIq2XxsGrid.points[block.qs[8 * s + i]], eight_signs(rest >> (7 * i)), to.codes + 32 * s + 8 * i);
  }
}

}  // namespace
}  // namespace zinc_rt::cpu

ZRT_DECODED_FORMAT(IQ2_XXS)
