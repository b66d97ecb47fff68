// How products with x in groups of 256 make floats of a group's integer sums (linear_row.glsl, linear_matrix.glsl). X
// is the type of x: q8a256, for weights of K-quants, or q16a256, for weights of fixed16.
// A group has two sums. K-quants: the sum of codes times codes of x, with the sub-scales, and for formats with minimums
// the sum of minimums times sums of codes of x. fixed16: A and B, the sums of the weights' codes times the high and the
// low digits of x.
// Included after PUSH and formats.glsl.
layout(constant_id = 1) const uint X = kQ8A256;
bool has_second() { return has_minimum() || X == kQ16A256; }

// read_scales() returns the float scales of a block as bits. scales_of() makes floats of them: that of the codes (x)
// and that of the minimums (y).
uint read_scales(uint64_t block) { return X == kQ8A256 ? raw_scales(block) : half_at(block + kScale); }
vec2 scales_of(uint raw) {
  if (X != kQ8A256) return vec2(bf16_to_f32(raw), 0.0);
  return vec2(f16_to_f32(raw & 0xFFFFu), has_minimum() ? f16_to_f32(raw >> 16) : 0.0);
}
// Returns a group's value v from its two sums and the scales d of its block. usual_fma is right, because its operands
// and result are 0 or at least 2^-24.
float value_of(int first, int second, vec2 d) {
  if (X == kQ16A256) return usual_fma(float(first), 256.0, float(second)) * d.x;
  return has_minimum() ? usual_fma(float(first), d.x, float(second) * -d.y) : float(first) * d.x;
}

// factors_of() returns the address of the factors of a row of x, which are the scales of its groups. factor_of()
// returns that of group g.
uint64_t factors_of(uint64_t row) { return row + (X == kQ8A256 ? q8a256_heads(p.k) : 2 * p.k); }
float factor_of(uint64_t factors, uint g) {
  return Floats(factors + g * (X == kQ8A256 ? kQ8A256Head : kQ16A256Head)).v[0];
}
// Returns two sums of 16 codes of x of group g: from code a on and from code b on.
ivec2 sums_of(uint64_t row, uint g, uint a, uint b) {
  Words head = Words(factors_of(row) + g * kQ8A256Head);
  return ivec2(bitfieldExtract(int(head.v[1 + a / 32]), int(a / 16 % 2 * 16), 16),
               bitfieldExtract(int(head.v[1 + b / 32]), int(b / 16 % 2 * 16), 16));
}
