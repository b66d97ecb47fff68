// Defines the weight format TQ1_0. A block has 256 weights: digits of base 3, five (in the last bytes four) per byte,
// and an f16 d. A weight is w = d * q (decoded.h, all scales are 1), where q = digit - 1 is in -1..1.
#include <cstring>

#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/decoded.h"
#include "kernels/cpu/quant/formats.h"

namespace zinc_rt::cpu {
namespace {

// Decodes kDigits digits of each of kBytes bytes: the first digit of all bytes, then the second, and so on. A byte is
// the fraction 0.digits in base 3 times 256, rounded up, so multiplying it by 3 moves the next digit before the point.
template <int kBytes, int kDigits>
ZRT_INLINE void decode_digits(const std::uint8_t* bytes, std::int8_t* to) {
  std::uint16_t rest[kBytes];
  for (int i = 0; i < kBytes; ++i) rest[i] = bytes[i];
  for (int n = 0; n < kDigits; ++n) {
    ZRT_ROLLED
    for (int i = 0; i < kBytes; ++i) {
      rest[i] = static_cast<std::uint16_t>((rest[i] & 255) * 3);
      to[kBytes * n + i] = static_cast<std::int8_t>((rest[i] >> 8) - 1);
    }
  }
}

ZRT_INLINE void decode(const BlockTQ1_0& block, DecodedBlock& to) {
  to.d = f16_to_f32(block.d);
  std::memset(to.scales, 1, sizeof(to.scales));
  decode_digits<32, 5>(block.qs, to.codes);
  decode_digits<16, 5>(block.qs + 32, to.codes + 160);
  decode_digits<4, 4>(block.qh, to.codes + 240);
}

}  // namespace
}  // namespace zinc_rt::cpu

ZRT_DECODED_FORMAT(TQ1_0)
