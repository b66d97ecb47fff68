#include "model/mlc/md5.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace zinc_rt::mlc {
namespace {

constexpr std::size_t kBlockBytes = 64;
using State = std::array<std::uint32_t, 4>;

// kSines[i] is the constant of step i of the 64 steps of MD5 (RFC 1321): floor(2^32 * |sin(i + 1)|).
constexpr std::array<std::uint32_t, 64> kSines = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};
constexpr int kShifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

// mix() is the bit function of a round. The next function returns which word of the block step i of the round uses.
template <int Round>
std::uint32_t mix(std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  if constexpr (Round == 0) return d ^ (b & (c ^ d));
  if constexpr (Round == 1) return c ^ (d & (b ^ c));
  if constexpr (Round == 2) return b ^ c ^ d;
  return c ^ (b | ~d);
}
template <int Round>
constexpr std::size_t word_of(std::size_t i) {
  if constexpr (Round == 0) return i;
  if constexpr (Round == 1) return (5 * i + 1) % 16;
  if constexpr (Round == 2) return (3 * i + 5) % 16;
  return 7 * i % 16;
}

template <int Round>
void run_round(State& s, const std::array<std::uint32_t, 16>& words) {
  for (std::size_t i = 0; i < 16; ++i) {
    const std::uint32_t sum = s[0] + mix<Round>(s[1], s[2], s[3]) + kSines[16 * Round + i] + words[word_of<Round>(i)];
    s = {s[3], s[1] + std::rotl(sum, kShifts[Round][i % 4]), s[1], s[2]};
  }
}

void add_block(State& state, const std::byte* block) {
  static_assert(std::endian::native == std::endian::little, "words are copied out of the block as they lie");
  std::array<std::uint32_t, 16> words;
  std::memcpy(words.data(), block, kBlockBytes);
  State s = state;
  run_round<0>(s, words);
  run_round<1>(s, words);
  run_round<2>(s, words);
  run_round<3>(s, words);
  for (std::size_t i = 0; i < s.size(); ++i) state[i] += s[i];
}

}  // namespace

std::string md5_hex(std::span<const std::byte> bytes) {
  State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const std::size_t whole = bytes.size() / kBlockBytes * kBlockBytes;
  for (std::size_t at = 0; at < whole; at += kBlockBytes) add_block(state, bytes.data() + at);
  // RFC 1321 ends the message with the remaining bytes, a one bit, zeros, and the message length in bits.
  std::array<std::byte, 2 * kBlockBytes> tail{};
  const std::size_t rest = bytes.size() - whole;
  if (rest > 0) std::memcpy(tail.data(), bytes.data() + whole, rest);
  tail[rest] = std::byte{0x80};
  const std::size_t tail_bytes = rest + 9 <= kBlockBytes ? kBlockBytes : 2 * kBlockBytes;
  const std::uint64_t n_bits = std::uint64_t{bytes.size()} * 8;
  std::memcpy(tail.data() + tail_bytes - sizeof(n_bits), &n_bits, sizeof(n_bits));
  for (std::size_t at = 0; at < tail_bytes; at += kBlockBytes) add_block(state, tail.data() + at);

  std::string out;
  for (const std::uint32_t word : state)
    for (int shift = 0; shift < 32; shift += 8) out += fmt::format("{:02x}", word >> shift & 0xff);
  return out;
}

}  // namespace zinc_rt::mlc
