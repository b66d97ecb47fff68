// What products of weights with rows of x in groups of 256 make of a group's sums of integers (linear_row.glsl,
// linear.glsl, matrix_digits.glsl). X is the type of x: q8a256, with weights of K-quants, or q16a256, with fixed16.
// A group has two sums: of codes times codes, and for formats with minimums of minimums times sums of codes; of
// fixed16 those with the high digits of x and with the low ones. Included after PUSH and formats.glsl.
layout(constant_id = 1) const uint X = kQ8A256;
bool has_second() { return has_minimum() || X == kQ16A256; }

// The scales of a block, as they lie and as floats.
uint read_scales(uint64_t block) { return X == kQ8A256 ? raw_scales(block) : half_at(block + kScale); }
vec2 scales_of(uint raw) {
  if (X != kQ8A256) return vec2(bf16_to_f32(raw), 0.0);
  return vec2(f16_to_f32(raw & 0xFFFFu), has_minimum() ? f16_to_f32(raw >> 16) : 0.0);
}
// A group's v of its sums.
float value_of(int first, int second, vec2 d) {
  if (X == kQ16A256) return usual_fma(float(first), 256.0, float(second)) * d.x;
  return has_minimum() ? usual_fma(float(first), d.x, float(second) * -d.y) : float(first) * d.x;
}

// Of a row of x: where the factors of its groups are.
uint64_t factors_of(uint64_t row) { return row + (X == kQ8A256 ? q8a256_heads(p.k) : 2 * p.k); }
float factor_of(uint64_t factors, uint g) {
  return Floats(factors + g * (X == kQ8A256 ? kQ8A256Head : kQ16A256Head)).v[0];
}
// Of a group: the sums of 16 codes of x from a and from b on.
ivec2 sums_of(uint64_t row, uint g, uint a, uint b) {
  Words head = Words(factors_of(row) + g * kQ8A256Head);
  return ivec2(bitfieldExtract(int(head.v[1 + a / 32]), int(a / 16 % 2 * 16), 16),
               bitfieldExtract(int(head.v[1 + b / 32]), int(b / 16 % 2 * 16), 16));
}
