// Defines the weight format IQ2_S. A block has 256 weights: an f16 d, 32 points of a grid with 8 signs each, and 4 bits
// s per 16 weights. A weight is w = ((d / 8) * (2 s + 1)) * q (decoded.h), and q is in -43..43.
#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/decoded.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/grids.h"
#include "kernels/cpu/quant/signs.h"

namespace zinc_rt::cpu {
namespace {

ZRT_INLINE void decode(const BlockIQ2_S& block, DecodedBlock& to) {
  to.d = f16_to_f32(block.d) * 0.125f;
  for (int j = 0; j < 16; ++j)
    to.scales[j] = static_cast<std::uint8_t>(2 * (block.scales[j / 2] >> (4 * (j % 2)) & 15) + 1);
  for (int i = 0; i < 32; ++i) {
    const int high = block.qh[i / 4] >> (2 * (i % 4)) & 3;
    copy_signed(kIq2SGrid.points[block.qs[i] | high << 8], block.signs[i], to.codes + 8 * i);
  }
}

}  // namespace
}  // namespace zinc_rt::cpu

ZRT_DECODED_FORMAT(IQ2_S)
