#include "mem/siphash.h"

#include <bit>
#include <cstring>

namespace zinc_rt::mem {

namespace {

static_assert(std::endian::native == std::endian::little, "words are copied out of the data as they lie");

struct State {
  std::uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
    v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
  }
  void absorb(std::uint64_t word) {
    v3 ^= word;
    round(), round();
    v0 ^= word;
  }
};

}  // namespace

std::uint64_t siphash(SipKey key, std::span<const std::byte> data) {
  // The four constants of SipHash's specification, which spell "somepseudorandomlygeneratedbytes".
  State state{key.k0 ^ 0x736f6d6570736575, key.k1 ^ 0x646f72616e646f6d, key.k0 ^ 0x6c7967656e657261,
              key.k1 ^ 0x7465646279746573};
  // The last word contains the length modulo 256 in its top byte, and below it the bytes that fill no whole word.
  std::uint64_t last = std::uint64_t{data.size()} << 56;
  for (; data.size() >= 8; data = data.subspan(8)) {
    std::uint64_t word = 0;
    std::memcpy(&word, data.data(), 8);
    state.absorb(word);
  }
  for (std::size_t i = 0; i < data.size(); ++i) last |= std::to_integer<std::uint64_t>(data[i]) << (8 * i);
  state.absorb(last);
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace zinc_rt::mem
