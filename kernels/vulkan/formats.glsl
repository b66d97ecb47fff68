// Reads weights as they lie in a file (kernels/common/quant_blocks.h). The specialization constant FORMAT is the number
// of the weights' type (cpp/base/dtype.h). Functions that return codes return four of a block in one word, as signed
// bytes, because integer dots take them so.
// REQUIRES: the address of a block is a multiple of the size in which word_at() reads the format: 4, 2 or (MXFP4) 1
// bytes. raw_part() reads blocks of Q4_K and Q5_K in vectors of 16 bytes, so it needs a multiple of 16.
#include "dots.glsl"
#include "half.glsl"
#include "types.glsl"
layout(constant_id = 0) const uint FORMAT = 0;
// Bytes of a block, by the number of the type.
const uint kBlockBytes[25] = uint[](4, 2, 2, 18, 20, 22, 24, 34, 84, 110, 144, 176, 210, 18, 136, 17,
                                    0, 0, 0, 0, 0, 0, 0, 0, 514);
uint block_bytes() {
  uint format = FORMAT;
  return kBlockBytes[format];
}

bool is_k_format() { return (FORMAT >= kQ2_K && FORMAT <= kQ6_K) || FORMAT == kIQ4_XS; }
bool has_minimum() {
  return FORMAT == kQ4_1 || FORMAT == kQ5_1 || FORMAT == kQ2_K || FORMAT == kQ4_K || FORMAT == kQ5_K;
}

uint byte_at(uint64_t address) { return uint(Bytes(address).v[0]); }
int signed_byte_at(uint64_t address) { return bitfieldExtract(int(byte_at(address)), 0, 8); }
uint half_at(uint64_t address) { return uint(Halves(address).v[0]); }
uint word_at(uint64_t address) {
  if (FORMAT == kMXFP4) {
    Bytes b = Bytes(address);
    return uint(b.v[0]) | uint(b.v[1]) << 8 | uint(b.v[2]) << 16 | uint(b.v[3]) << 24;
  }
  if (FORMAT == kQ4_1 || FORMAT == kQ5_1 || FORMAT == kQ2_K || FORMAT == kQ4_K || FORMAT == kQ5_K || FORMAT == kIQ4_XS)
    return Words(address).v[0];
  Halves h = Halves(address);
  return uint(h.v[0]) | uint(h.v[1]) << 16;
}

// Returns each byte of v minus the same byte of c, as signed bytes. REQUIRES: bytes of v are below 128, those of c at
// most 128.
uint less(uint v, uint c) { return ((v | 0x80808080u) - c) ^ 0x80808080u; }
// Returns the bits i..i + 3 of v, one in each byte of a word.
uint spread_bits(uint v, uint i) {
  v = v >> i & 15u;
  return (v & 1u) | (v & 2u) << 7 | (v & 4u) << 14 | (v & 8u) << 21;
}
// The values of the codes of IQ4_NL and IQ4_XS, and of MXFP4. look_up() returns the values of four codes, one per byte.
const int kIq4Values[16] = int[](-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
const int kFp4Values[16] = int[](0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
uint look_up(uint nibbles) {
  uint values = 0u;
  for (uint i = 0; i < 32; i += 8) {
    uint code = nibbles >> i & 15u;
    values |= uint((FORMAT == kMXFP4 ? kFp4Values[code] : kIq4Values[code]) & 255) << i;
  }
  return values;
}

// Returns the codes of the values i..i + 3 of a block, as signed bytes of a word. i is a multiple of 4.
uint codes4(uint64_t block, uint i) {
  uint within = i % 32, half_block = i / 128, part = i % 128 / 32;
  switch (FORMAT) {
    case kQ4_0: return less(word_at(block + 2 + i % 16) >> (i < 16 ? 0 : 4) & 0x0F0F0F0Fu, 0x08080808u);
    case kQ4_1: return word_at(block + 4 + i % 16) >> (i < 16 ? 0 : 4) & 0x0F0F0F0Fu;
    case kQ5_0:
      return less((word_at(block + 6 + i % 16) >> (i < 16 ? 0 : 4) & 0x0F0F0F0Fu) |
                  spread_bits(word_at(block + 2), i) << 4, 0x10101010u);
    case kQ5_1:
      return (word_at(block + 8 + i % 16) >> (i < 16 ? 0 : 4) & 0x0F0F0F0Fu) | spread_bits(word_at(block + 4), i) << 4;
    case kQ8_0: return word_at(block + 2 + i);
    case kIQ4_NL: return look_up(word_at(block + 2 + i % 16) >> (i < 16 ? 0 : 4) & 0x0F0F0F0Fu);
    case kMXFP4: return look_up(word_at(block + 1 + i % 16) >> (i < 16 ? 0 : 4) & 0x0F0F0F0Fu);
    case kQ2_K: return word_at(block + 16 + 32 * half_block + within) >> (2 * part) & 0x03030303u;
    case kQ3_K: {
      uint low = word_at(block + 32 + 32 * half_block + within) >> (2 * part) & 0x03030303u;
      uint high = word_at(block + within) >> (4 * half_block + part) & 0x01010101u;
      return less(low | high << 2, 0x04040404u);
    }
    case kQ4_K: return word_at(block + 16 + i / 64 * 32 + within) >> (i % 64 < 32 ? 0 : 4) & 0x0F0F0F0Fu;
    case kQ5_K: {
      uint low = word_at(block + 48 + i / 64 * 32 + within) >> (i % 64 < 32 ? 0 : 4) & 0x0F0F0F0Fu;
      return low | (word_at(block + 16 + within) >> (i / 32) & 0x01010101u) << 4;
    }
    case kQ6_K: {
      uint low = word_at(block + 64 * half_block + 32 * (part % 2) + within) >> (part < 2 ? 0 : 4) & 0x0F0F0F0Fu;
      uint high = word_at(block + 128 + 32 * half_block + within) >> (2 * part) & 0x03030303u;
      return less(low | high << 4, 0x20202020u);
    }
    case kIQ4_XS: return look_up(word_at(block + 8 + i / 32 * 16 + i % 16) >> (within < 16 ? 0 : 4) & 0x0F0F0F0Fu);
  }
  return 0u;
}

// Returns the integer scale (x) and minimum (y) of the values 16 s..16 s + 15 of a block of 256.
ivec2 sub_block(uint64_t block, uint s) {
  switch (FORMAT) {
    case kQ2_K: {
      uint b = byte_at(block + s);
      return ivec2(b & 15u, b >> 4);
    }
    case kQ3_K: {
      uint low = byte_at(block + 96 + s % 8) >> (4 * (s / 8)) & 15u;
      uint high = byte_at(block + 104 + s % 4) >> (2 * (s / 4)) & 3u;
      return ivec2(int(low | high << 4) - 32, 0);
    }
    case kQ4_K:
    case kQ5_K: {
      uint j = s / 2, packed = 4;
      if (j < 4) return ivec2(byte_at(block + packed + j) & 63u, byte_at(block + packed + 4 + j) & 63u);
      uint low = byte_at(block + packed + 4 + j), a = byte_at(block + packed + j - 4), b = byte_at(block + packed + j);
      return ivec2((low & 15u) | (a >> 6) << 4, (low >> 4) | (b >> 6) << 4);
    }
    case kQ6_K: return ivec2(signed_byte_at(block + 192 + s), 0);
    case kIQ4_XS: {
      uint j = s / 2, low = byte_at(block + 4 + j / 2) >> (4 * (j % 2)) & 15u, high = half_at(block + 2) >> (2 * j) & 3u;
      return ivec2(int(low | high << 4) - 32, 0);
    }
  }
  return ivec2(0);
}

// A block of 256 values is read in eight parts of 32 values. Part i is the 16 values from halves_at(i).x on and the 16
// from halves_at(i).y on. They are chosen so that their bits lie together in the block.
uvec2 halves_at(uint i) {
  switch (FORMAT) {
    case kQ4_K:
    case kQ5_K: return uvec2(0, 32) + 64 * (i / 2) + 16 * (i % 2);
    case kQ6_K: return uvec2(0, 64) + 128 * (i / 4) + 32 * (i % 4 / 2) + 16 * (i % 2);
  }
  return uvec2(0, 16) + 32 * i;
}
// Functions that read 16 bytes at an address that is a multiple of 2. words_around() returns the aligned words in which
// they lie: the first four, and in `last` the fifth, if the address is no multiple of 4. quad_of() returns the 16 bytes
// from these words. quad_at() does both.
uvec4 words_around(uint64_t address, out uint last) {
  Words w = Words(address & ~uint64_t(3));
  last = w.v[(uint(address) & 2u) == 0u ? 3 : 4];
  return uvec4(w.v[0], w.v[1], w.v[2], w.v[3]);
}
uvec4 quad_of(uvec4 w, uint last, uint64_t address) {
  return (uint(address) & 2u) == 0u ? w : w >> 16 | uvec4(w.yzw, last) << 16;
}
uvec4 quad_at(uint64_t address) {
  Words w = Words(address & ~uint64_t(3));
  uvec4 words = uvec4(w.v[0], w.v[1], w.v[2], w.v[3]);
  return (uint(address) & 2u) == 0u ? words : quad_of(words, w.v[4], address);
}
const uint kNibbles = 0x0F0F0F0Fu;
// A part of a block, unpacked: the codes of both halves as signed bytes, their integer scales (x, y), and their
// minimums (z, w).
struct Part {
  uvec4 first, second;
  ivec4 sub;
};
// A part of a block as raw_part() reads it; unpacked() makes a Part of it. They are two functions so that a kernel can
// compute something else while the part is being loaded.
struct RawPart {
  uvec4 a, b, c;
};
RawPart raw_part(uint64_t block, uint i) {
  RawPart raw = RawPart(uvec4(0u), uvec4(0u), uvec4(0u));
  uvec2 at = halves_at(i);
  switch (FORMAT) {
    case kQ4_K:
    case kQ5_K:
      raw.a = Quads(block).v[0];
      raw.b = Quads(block + (FORMAT == kQ4_K ? 16 : 48)).v[i];
      if (FORMAT == kQ5_K) raw.c = Quads(block + 16).v[i % 2];
      return raw;
    case kQ6_K:
      raw.a = words_around(block + 16 * i, raw.c.x);
      raw.b = words_around(block + 128 + 32 * (i / 4) + 16 * (i % 2), raw.c.y);
      raw.c.zw = uvec2(byte_at(block + 192 + at.x / 16), byte_at(block + 192 + at.y / 16));
      return raw;
  }
  for (uint k = 0; k < 4; ++k) {
    raw.a[k] = codes4(block, at.x + 4 * k);
    raw.b[k] = codes4(block, at.y + 4 * k);
  }
  ivec2 first = sub_block(block, at.x / 16), second = sub_block(block, at.y / 16);
  raw.c = uvec4(first.x, second.x, first.y, second.y);
  return raw;
}
Part unpacked(RawPart raw, uint64_t block, uint i) {
  Part part;
  switch (FORMAT) {
    case kQ4_K:
    case kQ5_K: {
      uvec4 head = raw.a, q = raw.b;
      part.first = q & kNibbles;
      part.second = q >> 4 & kNibbles;
      if (FORMAT == kQ5_K) {
        uvec4 high = raw.c >> (i & ~1u);
        part.first |= (high & 0x01010101u) << 4;
        part.second |= (high >> 1 & 0x01010101u) << 4;
      }
      // `scales` and `minimums` have one byte each for the sub-blocks 2 j and 2 j + 1, where j = i / 2.
      uvec3 bytes = head.yzw >> (8 * (i & 2u));
      uint scales = i < 4 ? bytes.x & 0x3F3Fu : (bytes.z & 0x0F0Fu) | (bytes.x >> 2 & 0x3030u);
      uint minimums = i < 4 ? bytes.y & 0x3F3Fu : (bytes.z >> 4 & 0x0F0Fu) | (bytes.y >> 2 & 0x3030u);
      part.sub = ivec4(scales & 255u, scales >> 8 & 255u, minimums & 255u, minimums >> 8 & 255u);
      return part;
    }
    case kQ6_K: {
      uvec4 low = quad_of(raw.a, raw.c.x, block), high = quad_of(raw.b, raw.c.y, block) >> (2 * (i % 4 / 2));
      part.first = (low & kNibbles) | (high & 0x03030303u) << 4;
      part.second = (low >> 4 & kNibbles) | (high >> 4 & 0x03030303u) << 4;
      for (uint k = 0; k < 4; ++k) {
        part.first[k] = less(part.first[k], 0x20202020u);
        part.second[k] = less(part.second[k], 0x20202020u);
      }
      part.sub = ivec4(bitfieldExtract(ivec2(raw.c.zw), 0, 8), 0, 0);
      return part;
    }
  }
  return Part(raw.a, raw.b, ivec4(raw.c));
}
// Returns the dot of 16 signed bytes each.
int dot16(uvec4 a, uvec4 b) { return dot4(a.x, b.x) + dot4(a.y, b.y) + dot4(a.z, b.z) + dot4(a.w, b.w); }

// Returns the scales of a block of 256 values as they lie in the file, as the bits of f16: the scale of the codes in
// the lower half of the word, and the scale of the minimums in the upper half. Without minimums the upper half is 0.
uint raw_scales(uint64_t block) {
  switch (FORMAT) {
    case kQ4_K:
    case kQ5_K: return Words(block).v[0];
    case kQ2_K: return Words(block + 80).v[0];
    case kQ3_K: return half_at(block + 108);
    case kQ6_K: return half_at(block + 208);
  }
  return half_at(block);
}
// Returns two floats of a block. x is the scale of the codes. y is the scale of the minimums in blocks of 256 values,
// and the minimum itself in blocks of 32. Without minimums y is 0.
vec2 block_scales(uint64_t block) {
  switch (FORMAT) {
    case kQ4_1:
    case kQ5_1:
    case kQ4_K:
    case kQ5_K: return vec2(f16_to_f32(half_at(block)), f16_to_f32(half_at(block + 2)));
    case kQ2_K: return vec2(f16_to_f32(half_at(block + 80)), f16_to_f32(half_at(block + 82)));
    case kQ3_K: return vec2(f16_to_f32(half_at(block + 108)), 0.0);
    case kQ6_K: return vec2(f16_to_f32(half_at(block + 208)), 0.0);
    case kMXFP4: {
      uint e = byte_at(block);
      return vec2(uintBitsToFloat(e < 2u ? 0x00200000u << e : (e - 1u) << 23), 0.0);
    }
  }
  return vec2(f16_to_f32(half_at(block)), 0.0);
}

// A block of fixed16 has the high digits of its 256 codes, from kLowDigits on the low digits, and at kScale its scale.
const uint kLowDigits = 256, kScale = 512;
float fixed_element(uint64_t block, uint i) {
  int code = signed_byte_at(block + i) * 256 + signed_byte_at(block + kLowDigits + i);
  return bf16_to_f32(half_at(block + kScale)) * float(code);
}

// Returns element i of a row, converted to float with the bits of the format's dequantize_row (kernels/cpu/quant).
float element(uint64_t row_address, uint i) {
  if (FORMAT == kF32) return Floats(row_address).v[i];
  if (FORMAT == kF16) return f16_to_f32(uint(Halves(row_address).v[i]));
  if (FORMAT == kBF16) return bf16_to_f32(uint(Halves(row_address).v[i]));
  if (FORMAT == kFixed16) return fixed_element(row_address + uint64_t(i / 256) * block_bytes(), i % 256);
  uint n = is_k_format() ? 256u : 32u, within = i % n;
  uint64_t block = row_address + uint64_t(i / n) * block_bytes();
  float q = float(bitfieldExtract(int(codes4(block, within & ~3u)), int(within % 4 * 8), 8));
  vec2 d = block_scales(block);
  if (is_k_format()) {
    ivec2 sub = sub_block(block, within / 16);
    float scaled = d.x * float(sub.x) * q;
    return has_minimum() ? scaled - d.y * float(sub.y) : scaled;
  }
  return has_minimum() ? d.x * q + d.y : d.x * q;
}
