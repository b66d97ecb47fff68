// The functions of kernels/common/half.h in GLSL. They do not use GLSL's own conversions between f16 and f32, because a
// driver may merge those with the arithmetic around them.
float f16_to_f32(uint half_bits) {
  uint sign = (half_bits & 0x8000u) << 16, rest = half_bits & 0x7fffu;
  uint subnormal = floatBitsToUint(float(int(rest)) * 5.9604644775390625e-8);
  uint normal = (rest << 13) + (112u << 23) + (rest >= 0x7c00u ? 112u << 23 : 0u);
  uint quiet = rest > 0x7c00u ? 0x00400000u : 0u;
  return uintBitsToFloat(sign | quiet | (rest < 0x0400u ? subnormal : normal));
}
uint f32_to_f16(float value) {
  uint bits = floatBitsToUint(value), sign = (bits >> 16) & 0x8000u, rest = bits & 0x7fffffffu;
  bool is_small = rest < 0x38800000u;
  // Numbers below 2^-14 become subnormal. The addition itself rounds them to a multiple of 2^-24, the smallest
  // subnormal f16, because that is one ulp of 0.5.
  uint subnormal = floatBitsToUint(uintBitsToFloat(is_small ? rest : 0u) + 0.5) - 0x3f000000u;
  uint normal = (rest - (112u << 23) + 0x0fffu + ((rest >> 13) & 1u)) >> 13;
  uint nan = 0x7e00u | ((rest >> 13) & 0x03ffu);
  uint ordered = rest >= 0x47800000u ? 0x7c00u : (is_small ? subnormal : normal);
  return sign | (rest > 0x7f800000u ? nan : ordered);
}
float bf16_to_f32(uint bits) { return uintBitsToFloat(bits << 16); }
