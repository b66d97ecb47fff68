// Reads each weight format's codes, scales and minimums from a group of a row panel (kernels/cpu/quant/panels.h). A
// vector holds one word for each of 16 rows. The units of kernels/cpu_simd include this after their dots_<isa>.h.
//
// A format F has
//   Block             its block in a row of W
//   kIsK, kHasMin     as in kernels/cpu/quant/<format>.cpp
//   kSigned           codes are signed bytes; else unsigned, at most kLargest, and the value is code - kOffset
//   kSub              K-quants: values that share a scale, 16 or 32
//   each_word(g, s, fn)  fn(Word, codes) for the 8 words (4 values of k each) of sub-block s of 32 values
//   d(g, s), m(g, s)  scale and minimum by which the reference multiplies (K-quants: the group's, with m = -dmin).
//                     kHalves: two scales d(g, s, half) per block of 32, of 16 values each
//   sc(g, j)          K-quants: scale j in each lane;  min(g, j): minimum j
// where g is the group: its first byte, and its number of blocks of 32.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/decoded.h"
#include "kernels/cpu/quant/value_tables.h"

namespace zinc_rt::cpu_simd {
namespace {

struct Group {
  const std::byte* at;
  int n_blocks;  // number of blocks of 32 values, 1 to 8
};

template <int... kAt, class Fn>
ZRT_SIMD void repeat_each(std::integer_sequence<int, kAt...>, Fn&& fn) {
  (fn(std::integral_constant<int, kAt>{}), ...);
}
// Calls fn(0) to fn(n - 1), each with a compile-time constant.
template <int kN, class Fn>
ZRT_SIMD void repeat(Fn&& fn) {
  repeat_each(std::make_integer_sequence<int, kN>{}, fn);
}
#define ZRT_INLINE_LAMBDA __attribute__((always_inline))

// The word of a sub-block's codes that each_word passes: word kIndex of the values, and the kNth one passed. It is a
// type, so that the sums know which products are their first and last before anything is inlined.
template <int kNthPassed, int kIndex>
struct Word {
  static constexpr int kNth = kNthPassed;
  constexpr operator int() const { return kIndex; }
};
template <int kIndex>
using InOrder = Word<kIndex, kIndex>;

constexpr int kVector = 64;  // bytes of a vector, which holds one word for each of 16 rows
constexpr int kHalfVector = 32;

ZRT_SIMD Ints every_byte(int value) {
  return splat(static_cast<std::int32_t>(0x01010101u * static_cast<unsigned>(value)));
}
ZRT_SIMD Ints low_nibbles(const Ints& bytes) {
  return bytes & every_byte(15);
}
ZRT_SIMD Ints high_nibbles(const Ints& bytes) {
  return shift_right(bytes, 4) & every_byte(15);
}
// Calls fn for the 8 words of a block of 32 values whose byte i holds values i and i + 16. The low nibbles of word i of
// the codes are word i of the values, and the high nibbles are word i + 4.
template <class Fn>
ZRT_SIMD void each_nibble_word(const std::byte* qs, Fn&& fn) {
  repeat<4>([&](auto i) ZRT_INLINE_LAMBDA {
    const Ints bytes = load_ints(qs + kVector * i);
    fn(Word<2 * i, i>{}, low_nibbles(bytes));
    fn(Word<2 * i + 1, i + 4>{}, high_nibbles(bytes));
  });
}
// Returns bits 4 w to 4 w + 3 of each lane, each as 0 or 16, in bytes 0 to 3.
ZRT_SIMD Ints fifth_bits(const Ints& bits, int w) {
  const Ints four = shift_right(bits, 4 * w);
  return (shift_left(four, 4) & splat(0x10)) | (shift_left(four, 11) & splat(0x1000)) |
         (shift_left(four, 18) & splat(0x100000)) | (shift_left(four, 25) & splat(0x10000000));
}

// The following formats have blocks of 32 values.

struct Small {
  static constexpr bool kIsK = false, kHasMin = false, kSigned = false, kHalves = false;
  static constexpr int kOffset = 0, kSub = 32;
  ZRT_SIMD Floats d(const Group& g, int s) { return load_f16(g.at + kHalfVector * s); }
};
struct WithMin : Small {
  static constexpr bool kHasMin = true;
  ZRT_SIMD Floats m(const Group& g, int s) { return load_f16(g.at + kHalfVector * (g.n_blocks + s)); }
};
struct Q4_0 : Small {
  using Block = BlockQ4_0;
  static constexpr int kOffset = 8, kLargest = 15;
  template <class Fn>
  ZRT_SIMD void each_word(const Group& g, int s, Fn&& fn) {
    each_nibble_word(g.at + kHalfVector * g.n_blocks + 4 * kVector * s, fn);
  }
};
struct Q4_1 : WithMin {
  using Block = BlockQ4_1;
  static constexpr int kLargest = 15;
  template <class Fn>
  ZRT_SIMD void each_word(const Group& g, int s, Fn&& fn) {
    each_nibble_word(g.at + 2 * kHalfVector * g.n_blocks + 4 * kVector * s, fn);
  }
};
template <class Fn>
ZRT_SIMD void each_five_bit_word(const std::byte* qh, const std::byte* qs, Fn&& fn) {
  const Ints bits = load_ints(qh);
  each_nibble_word(qs, [&](auto w, const Ints& codes) ZRT_INLINE_LAMBDA { fn(w, codes | fifth_bits(bits, w)); });
}
struct Q5_0 : Small {
  using Block = BlockQ5_0;
  static constexpr int kOffset = 16, kLargest = 31;
  template <class Fn>
  ZRT_SIMD void each_word(const Group& g, int s, Fn&& fn) {
    const std::byte* qh = g.at + kHalfVector * g.n_blocks;
    each_five_bit_word(qh + kVector * s, qh + kVector * (g.n_blocks + 4 * s), fn);
  }
};
struct Q5_1 : WithMin {
  using Block = BlockQ5_1;
  static constexpr int kLargest = 31;
  template <class Fn>
  ZRT_SIMD void each_word(const Group& g, int s, Fn&& fn) {
    const std::byte* qh = g.at + 2 * kHalfVector * g.n_blocks;
    each_five_bit_word(qh + kVector * s, qh + kVector * (g.n_blocks + 4 * s), fn);
  }
};
struct Q8_0 : Small {
  using Block = BlockQ8_0;
  static constexpr bool kSigned = true;
  static constexpr int kLargest = 128;
  template <class Fn>
  ZRT_SIMD void each_word(const Group& g, int s, Fn&& fn) {
    const std::byte* qs = g.at + kHalfVector * g.n_blocks + 8 * kVector * s;
    repeat<8>([&](auto w) ZRT_INLINE_LAMBDA { fn(InOrder<w>{}, load_ints(qs + kVector * w)); });
  }
};
struct Iq4Nl : Small {
  using Block = BlockIQ4_NL;
  static constexpr bool kSigned = true;
  static constexpr int kLargest = 128;
  template <class Fn>
  ZRT_SIMD void each_word(const Group& g, int s, Fn&& fn) {
    each_nibble_word(g.at + kHalfVector * g.n_blocks + 4 * kVector * s,
                     [&](auto w, const Ints& codes) ZRT_INLINE_LAMBDA { fn(w, look_up(codes, kIq4Values)); });
  }
};
struct Mxfp4 : Small {
  using Block = BlockMXFP4;
  static constexpr int kOffset = 12, kLargest = 24;
  ZRT_SIMD Floats d(const Group& g, int s) {  // d = 2^(e - 128); it is subnormal for e = 0 and 1
    const Ints e = load_u8(g.at + 16 * s), two = splat(2);
    const Ints subnormal = where_less(e, two, shift_left(splat(0x00200000), e & splat(1)));
    const Ints normal = where_less(splat(1), e, shift_left(e - splat(1), 23));
    return as_floats(subnormal | normal);
  }
  template <class Fn>
  ZRT_SIMD void each_word(const Group& g, int s, Fn&& fn) {
    each_nibble_word(g.at + 16 * g.n_blocks + 4 * kVector * s, [&](auto w, const Ints& codes) ZRT_INLINE_LAMBDA {
      fn(w, add_bytes(look_up(codes, kFp4Values), every_byte(kOffset)));
    });
  }
};

struct Nvfp4 : Small {
  using Block = BlockNVFP4;
  static constexpr bool kHalves = true;
  static constexpr int kOffset = 12, kSub = 16, kLargest = 24;
  // As scale() in kernels/cpu/quant/nvfp4.cpp.
  ZRT_SIMD Floats d(const Group& g, int s, int half) {
    const Ints scales = load_ints(g.at + kVector * (s / 2));
    const Ints bits = shift_right(scales, 16 * (s % 2) + 8 * half) & splat(255), none = splat(0x7F);
    const Ints moved = shift_left(bits & none, 20);
    return as_floats(where_less(bits, none, moved) | where_less(none, bits, moved)) * splat(0x1p119f);
  }
  template <class Fn>
  ZRT_SIMD void each_word(const Group& g, int s, Fn&& fn) {
    const std::byte* qs = g.at + kVector * (g.n_blocks / 2) + 4 * kVector * s;
    repeat<2>([&](auto half) ZRT_INLINE_LAMBDA {
      const Ints first = load_ints(qs + 2 * kVector * half), second = load_ints(qs + 2 * kVector * half + kVector);
      fn(InOrder<4 * half>{}, value(low_nibbles(first)));
      fn(InOrder<4 * half + 1>{}, value(low_nibbles(second)));
      fn(InOrder<4 * half + 2>{}, value(high_nibbles(first)));
      fn(InOrder<4 * half + 3>{}, value(high_nibbles(second)));
    });
  }

 private:
  ZRT_SIMD Ints value(const Ints& codes) { return add_bytes(look_up(codes, kFp4Values), every_byte(kOffset)); }
};

// The following formats are K-quants, which have one block of 256 values per group.

struct Super {
  static constexpr bool kIsK = true, kHasMin = false, kSigned = false, kHalves = false;
  static constexpr int kOffset = 0;
  ZRT_SIMD Floats d(const Group& g, int) { return load_f16(g.at); }
  ZRT_SIMD Floats m(const Group& g, int) { return negate(load_f16(g.at + kHalfVector)); }
  // Returns byte j % 4 of each lane as an unsigned number.
  ZRT_SIMD Ints byte_of(const Ints& word, int j) { return shift_right(word, 8 * (j % 4)) & splat(255); }
};
// Reads the packed six-bit scales of Q4_K and Q5_K, which kernels/cpu/quant/k_scales.h describes.
struct SixBitScales : Super {
  static constexpr bool kHasMin = true;
  static constexpr int kSub = 32;
  static constexpr int kScales = 2 * kHalfVector;
  ZRT_SIMD Ints sc(const Group& g, int j) { return number(g, 0, j); }
  ZRT_SIMD Ints min(const Group& g, int j) { return number(g, 1, j); }

 private:
  ZRT_SIMD Ints number(const Group& g, int which, int j) {
    const Ints first = load_ints(g.at + kScales + kVector * which);
    if (j < 4) return byte_of(first, j) & splat(63);
    const Ints rest = load_ints(g.at + kScales + 2 * kVector);
    return (shift_right(rest, 8 * (j - 4) + 4 * which) & splat(15)) |
           shift_left(shift_right(first, 8 * (j - 4) + 6) & splat(3), 4);
  }
};
struct Q4K : SixBitScales {
  using Block = BlockQ4_K;
  static constexpr int kLargest = 15;
  static constexpr int kQs = kScales + 3 * kVector;
  template <class Fn>
  ZRT_SIMD void each_word(const Group& g, int s, Fn&& fn) {
    const std::byte* qs = g.at + kQs + 8 * kVector * (s / 2);
    repeat<8>([&](auto w) ZRT_INLINE_LAMBDA {
      fn(InOrder<w>{}, shift_right(load_ints(qs + kVector * w), 4 * (s % 2)) & every_byte(15));
    });
  }
};
struct Q5K : SixBitScales {
  using Block = BlockQ5_K;
  static constexpr int kLargest = 31;
  static constexpr int kQh = kScales + 3 * kVector, kQs = kQh + 8 * kVector;
  template <class Fn>
  ZRT_SIMD void each_word(const Group& g, int s, Fn&& fn) {
    const std::byte *qh = g.at + kQh, *qs = g.at + kQs + 8 * kVector * (s / 2);
    repeat<8>([&](auto w) ZRT_INLINE_LAMBDA {
      const Ints low = shift_right(load_ints(qs + kVector * w), 4 * (s % 2)) & every_byte(15);
      fn(InOrder<w>{}, low | shift_left(shift_right(load_ints(qh + kVector * w), s) & every_byte(1), 4));
    });
  }
};
struct Q6K : Super {
  using Block = BlockQ6_K;
  static constexpr int kSub = 16, kOffset = 32, kLargest = 63;
  static constexpr int kScales = kHalfVector, kQh = kScales + 4 * kVector, kQl = kQh + 16 * kVector;
  ZRT_SIMD Ints sc(const Group& g, int j) {
    return shift_right_signed(shift_left(load_ints(g.at + kScales + kVector * (j / 4)), 24 - 8 * (j % 4)), 24);
  }
  template <class Fn>
  ZRT_SIMD void each_word(const Group& g, int s, Fn&& fn) {
    const int half = s / 4, part = s % 4;
    const std::byte *ql = g.at + kQl + kVector * (16 * half + 8 * (part % 2)), *qh = g.at + kQh + 8 * kVector * half;
    repeat<8>([&](auto w) ZRT_INLINE_LAMBDA {
      const Ints low = shift_right(load_ints(ql + kVector * w), 4 * (part / 2)) & every_byte(15);
      fn(InOrder<w>{}, low | shift_left(shift_right(load_ints(qh + kVector * w), 2 * part) & every_byte(3), 4));
    });
  }
};
struct Q2K : Super {
  using Block = BlockQ2_K;
  static constexpr bool kHasMin = true;
  static constexpr int kSub = 16, kLargest = 3;
  static constexpr int kScales = 2 * kHalfVector, kQs = kScales + 4 * kVector;
  ZRT_SIMD Ints sc(const Group& g, int j) {
    return byte_of(load_ints(g.at + kScales + kVector * (j / 4)), j) & splat(15);
  }
  ZRT_SIMD Ints min(const Group& g, int j) {
    return shift_right(byte_of(load_ints(g.at + kScales + kVector * (j / 4)), j), 4);
  }
  template <class Fn>
  ZRT_SIMD void each_word(const Group& g, int s, Fn&& fn) {
    const std::byte* qs = g.at + kQs + 8 * kVector * (s / 4);
    repeat<8>([&](auto w) ZRT_INLINE_LAMBDA {
      fn(InOrder<w>{}, shift_right(load_ints(qs + kVector * w), 2 * (s % 4)) & every_byte(3));
    });
  }
};
struct Q3K : Super {
  using Block = BlockQ3_K;
  static constexpr int kSub = 16, kOffset = 4, kLargest = 7;
  static constexpr int kScales = kHalfVector, kMask = kScales + 3 * kVector, kQs = kMask + 8 * kVector;
  ZRT_SIMD Ints sc(const Group& g, int j) {
    const std::byte* scales = g.at + kScales;
    const Ints low = shift_right(byte_of(load_ints(scales + kVector * (j / 4 % 2)), j), 4 * (j / 8)) & splat(15);
    const Ints high = shift_right(byte_of(load_ints(scales + 2 * kVector), j), 2 * (j / 4)) & splat(3);
    return (low | shift_left(high, 4)) - splat(32);
  }
  template <class Fn>
  ZRT_SIMD void each_word(const Group& g, int s, Fn&& fn) {
    const std::byte *mask = g.at + kMask, *qs = g.at + kQs + 8 * kVector * (s / 4);
    repeat<8>([&](auto w) ZRT_INLINE_LAMBDA {
      const Ints low = shift_right(load_ints(qs + kVector * w), 2 * (s % 4)) & every_byte(3);
      fn(InOrder<w>{}, low | shift_left(shift_right(load_ints(mask + kVector * w), s) & every_byte(1), 2));
    });
  }
};
struct Iq4Xs : Super {
  using Block = BlockIQ4_XS;
  static constexpr bool kSigned = true;
  static constexpr int kSub = 32, kLargest = 128;
  static constexpr int kHigh = kHalfVector, kLow = 2 * kHalfVector, kQs = kLow + kVector;
  ZRT_SIMD Ints sc(const Group& g, int j) {
    const Ints low = shift_right(load_ints(g.at + kLow), 4 * j) & splat(15);
    const Ints high = shift_right(load_u16(g.at + kHigh), 2 * j) & splat(3);
    return (low | shift_left(high, 4)) - splat(32);
  }
  template <class Fn>
  ZRT_SIMD void each_word(const Group& g, int s, Fn&& fn) {
    each_nibble_word(g.at + kQs + 4 * kVector * s,
                     [&](auto w, const Ints& codes) ZRT_INLINE_LAMBDA { fn(w, look_up(codes, kIq4Values)); });
  }
};

// A group of decoded blocks (kernels/cpu/quant/decoded.h), which is not stored in panels: linear_source.h makes it.
struct Decoded : Super {
  using Block = cpu::DecodedBlock;
  static constexpr int kSub = 16, kOffset = cpu::kLargestDecodedCode, kLargest = 2 * cpu::kLargestDecodedCode;
  // As in a panel, there is a field after another, and in each the elements of 16 rows.
  struct Interleaved {
    float ds[16];
    std::uint8_t scales[16][16];
    alignas(64) std::int32_t words[64][16];
  };
  ZRT_SIMD const Interleaved& in(const Group& g) { return *reinterpret_cast<const Interleaved*>(g.at); }
  ZRT_SIMD Floats d(const Group& g, int) { return load(in(g).ds); }
  ZRT_SIMD Ints sc(const Group& g, int j) { return load_u8(in(g).scales[j]); }
  template <class Fn>
  ZRT_SIMD void each_word(const Group& g, int s, Fn&& fn) {
    repeat<8>([&](auto w) ZRT_INLINE_LAMBDA {
      fn(InOrder<w>{}, add_bytes(load_ints(in(g).words[8 * s + w]), every_byte(kOffset)));
    });
  }
};

}  // namespace
}  // namespace zinc_rt::cpu_simd
