// ByteSet is a set of byte values, as a bit per value.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstdint>

namespace zinc_rt::grammar {

struct ByteSet {
  std::array<std::uint64_t, 4> words = {};

  static ByteSet range(std::uint8_t first, std::uint8_t last) {
    ByteSet set;
    for (unsigned byte = first; byte <= last; ++byte) set.add(static_cast<std::uint8_t>(byte));
    return set;
  }
  void add(std::uint8_t byte) { words[byte >> 6] |= std::uint64_t{1} << (byte & 63); }
  bool has(std::uint8_t byte) const { return (words[byte >> 6] >> (byte & 63) & 1) != 0; }
  bool is_empty() const { return (words[0] | words[1] | words[2] | words[3]) == 0; }
  ByteSet operator|(const ByteSet& other) const {
    ByteSet set;
    for (int i = 0; i < 4; ++i) set.words[i] = words[i] | other.words[i];
    return set;
  }
  ByteSet operator&(const ByteSet& other) const {
    ByteSet set;
    for (int i = 0; i < 4; ++i) set.words[i] = words[i] & other.words[i];
    return set;
  }
  ByteSet operator~() const {
    ByteSet set;
    for (int i = 0; i < 4; ++i) set.words[i] = ~words[i];
    return set;
  }
  auto operator<=>(const ByteSet&) const = default;
};

}  // namespace zinc_rt::grammar
