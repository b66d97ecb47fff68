// Defines the weight format IQ1_M. A block has 256 weights: 32 points g of a grid, each with a shift of +1 or -1, 3
// bits s per 16 weights, and an f16 d, whose four nibbles are the highest bits of the four words of scales.
// A weight is w = ((d / 8) * (2 s + 1)) * q (decoded.h), and q = 8 g + shift is in -9..9.
#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/decoded.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/grids.h"
#include "kernels/cpu/quant/shifts.h"

namespace zinc_rt::cpu {
namespace {

ZRT_INLINE void decode(const BlockIQ1_M& block, DecodedBlock& to) {
  std::uint32_t d = 0;
  for (int i = 0; i < 4; ++i) d |= static_cast<std::uint32_t>(block.scales[i] >> 12) << (4 * i);
  to.d = f16_to_f32(static_cast<std::uint16_t>(d)) * 0.125f;
  for (int j = 0; j < 16; ++j)
    to.scales[j] = static_cast<std::uint8_t>(2 * (block.scales[j / 4] >> (3 * (j % 4)) & 7) + 1);
  for (int i = 0; i < 32; ++i) {
    const int bits = block.qh[i / 2] >> (4 * (i % 2));
    copy_shifted(kIq1Grid.points[block.qs[i] | (bits & 7) << 8], 1 - (bits >> 2 & 2), to.codes + 8 * i);
  }
}

}  // namespace
}  // namespace zinc_rt::cpu

ZRT_DECODED_FORMAT(IQ1_M)
