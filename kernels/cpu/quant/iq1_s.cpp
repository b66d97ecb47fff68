// Defines the weight format IQ1_S. A block has 256 weights: an f16 d, 32 points g of a grid, and per 32 weights a shift
// of +1 or -1 and 3 bits s. A weight is w = ((d / 8) * (2 s + 1)) * q (decoded.h), and q = 8 g + shift is in -9..9.
#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/decoded.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/grids.h"
#include "kernels/cpu/quant/shifts.h"

namespace zinc_rt::cpu {
namespace {

ZRT_INLINE void decode(const BlockIQ1_S& block, DecodedBlock& to) {
  to.d = f16_to_f32(block.d) * 0.125f;
  for (int s = 0; s < 8; ++s) {
    const int bits = block.qh[s], shift = 1 - (bits >> 14 & 2);
    set_scale(to, s, 2 * (bits >> 12 & 7) + 1);
    for (int i = 0; i < 4; ++i)
      copy_shifted(kIq1Grid.points[block.qs[4 * s + i] | (bits >> (3 * i) & 7) << 8], shift, to.codes + 32 * s + 8 * i);
  }
}

}  // namespace
}  // namespace zinc_rt::cpu

ZRT_DECODED_FORMAT(IQ1_S)
