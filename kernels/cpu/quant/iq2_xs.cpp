// Defines the weight format IQ2_XS. A block has 256 weights: an f16 d, 32 points of a grid with 7 signs each, and 4
// bits s per 16 weights. A weight is w = ((d / 8) * (2 s + 1)) * q (decoded.h), and q is in -43..43.
#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/decoded.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/grids.h"
#include "kernels/cpu/quant/signs.h"

namespace zinc_rt::cpu {
namespace {

ZRT_INLINE void decode(const BlockIQ2_XS& block, DecodedBlock& to) {
  to.d = f16_to_f32(block.d) * 0.125f;
  for (int j = 0; j < 16; ++j)
    to.scales[j] = static_cast<std::uint8_t>(2 * (block.scales[j / 2] >> (4 * (j % 2)) & 15) + 1);
  for (int i = 0; i < 32; ++i)
    copy_signed(kIq2XsGrid.points[block.qs[i] & 511], eight_signs(block.qs[i] >> 9), to.codes + 8 * i);
}

}  // namespace
}  // namespace zinc_rt::cpu

ZRT_DECODED_FORMAT(IQ2_XS)
