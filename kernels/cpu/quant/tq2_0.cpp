// Defines the weight format TQ2_0. A block has 256 weights: codes of two bits, and an f16 d. A weight is w = d * q
// (decoded.h, all scales are 1), where q = code - 1. Files have codes 0 to 2; q of code 3 is 2.
#include <cstring>

#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/decoded.h"
#include "kernels/cpu/quant/formats.h"

namespace zinc_rt::cpu {
namespace {

ZRT_INLINE void decode(const BlockTQ2_0& block, DecodedBlock& to) {
  to.d = f16_to_f32(block.d);
  std::memset(to.scales, 1, sizeof(to.scales));
  for (int half = 0; half < 2; ++half)
    for (int plane = 0; plane < 4; ++plane)
      for (int i = 0; i < 32; ++i)
        to.codes[128 * half + 32 * plane + i] =
            static_cast<std::int8_t>((block.qs[32 * half + i] >> (2 * plane) & 3) - 1);
}

}  // namespace
}  // namespace zinc_rt::cpu

ZRT_DECODED_FORMAT(TQ2_0)
