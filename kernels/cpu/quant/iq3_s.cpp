// Defines the weight format IQ3_S. A block has 256 weights: an f16 d, 64 points of a grid, 256 signs, and 4 bits s per
// 32 weights. A weight is w = (d * (2 s + 1)) * q (decoded.h), and q is in -15..15.
#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/decoded.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/grids.h"
#include "kernels/cpu/quant/signs.h"

namespace zinc_rt::cpu {
namespace {

ZRT_INLINE void decode(const BlockIQ3_S& block, DecodedBlock& to) {
  to.d = f16_to_f32(block.d);
  for (int s = 0; s < 8; ++s) set_scale(to, s, 2 * (block.scales[s / 2] >> (4 * (s % 2)) & 15) + 1);
  for (int i = 0; i < 32; ++i) {
    const int high = block.qh[i / 4] >> (2 * (i % 4));
    copy_signed(kIq3SGrid.points[block.qs[2 * i] | (high & 1) << 8],
                kIq3SGrid.points[block.qs[2 * i + 1] | (high & 2) << 7], block.signs[i], to.codes + 8 * i);
  }
}

}  // namespace
}  // namespace zinc_rt::cpu

ZRT_DECODED_FORMAT(IQ3_S)
