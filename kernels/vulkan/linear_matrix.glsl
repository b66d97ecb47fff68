// LINEAR for many rows of x, of groups of 256, by matrices of int8; linear.glsl says what it computes and in which
// order. A workgroup makes kMatrixRows rows of w times kMatrixTokens rows of x, a subgroup 16 of w and 32 of x. In a
// step the workgroup's memory gets the digits of the weights (matrix_digits.glsl) and the codes of x, for all of its
// subgroups. After a group an invocation has a row of w and 16 rows of x, and goes on with floats.
// Rows past the end of w repeat the last one; those of x are what lies there, within its memory. Neither is stored.
// Grid: (rows of x / kMatrixTokens, rows of w / kMatrixRows). Included after PUSH.
// Digits, low and high, and codes; then sums, of a subgroup 1,024. Behind them the factors of the rows of x, and whether
// one of them was not usual (accumulate.glsl). It is one array, so that a matrix is read from where 16 bytes begin.
const uint kFactors = 3 * kMatrixRows * 44, kUnusual = kFactors + kMatrixTokens;
shared uint tile[kUnusual + 1];
#include "accumulate.glsl"
#include "matrices.glsl"
#include "matrix_digits.glsl"
const uint kHigh = kMatrixRows * kPitch, kCodes = 2 * kHigh, kCodesLow = kCodes + kMatrixTokens * kPitch;
const uint kQuads = kStep / 16;  // of a row of codes in a step

void put_codes(uint64_t x, uint at) {
  for (uint i = gl_LocalInvocationID.x; i < kMatrixTokens * kQuads; i += kMatrixWidth)
    put(at + i / kQuads * kPitch + 4 * (i % kQuads), Quads(x + uint64_t(i / kQuads) * p.x_row_bytes).v[i % kQuads]);
}
void put_sums(uint64_t x) {
  uint i = gl_LocalInvocationID.x;
  if (i < 2 * kMatrixTokens)
    put(kCodes + i / 2 * kPitch + kMinimums + 4 * (i % 2), Quads(x + uint64_t(i / 2) * p.x_row_bytes).v[i % 2]);
}

void main() {
  uint id = gl_LocalInvocationID.x, subgroup = id / 32, lane = id % 32;
  uint first_m = gl_WorkGroupID.y * kMatrixRows, first_t = gl_WorkGroupID.x * kMatrixTokens;
  uint own_row = 16 * (subgroup % 4), own_token = 32 * (subgroup / 4);  // of the workgroup's
  uint m = first_m + own_row + lane % 16, n_groups = p.k / 256, own_tile = subgroup * 1024;
  uint put_row = id / kParts, put_at = put_row * kPitch, a_at = own_row * kPitch;
  uint b_at = kCodes + own_token * kPitch, b_low_at = kCodesLow + own_token * kPitch;
  uint64_t put_w = p.w + uint64_t(min(first_m + put_row, p.m - 1)) * p.w_row_bytes;
  uint64_t own_w = p.w + uint64_t(min(m, p.m - 1)) * p.w_row_bytes, x = p.x + uint64_t(first_t) * p.x_row_bytes;
  uint64_t own_factors = factors_of(x + uint64_t(id % kMatrixTokens) * p.x_row_bytes);
  bool is_usual = true;
  float acc[16];
  UNROLLED for (uint n = 0; n < 16; ++n) acc[n] = 0.0;
  if (id == 0) tile[kUnusual] = 0u;
  for (uint g = 0; g < n_groups; ++g) {
    uint64_t block = put_w + uint64_t(g) * block_bytes();
    vec2 d = scales_of(own_w + uint64_t(g) * block_bytes());
    MatrixC high0 = zero_matrix(), high1 = zero_matrix(), low0 = zero_matrix(), low1 = zero_matrix();
    MatrixC second_high0 = zero_matrix(), second_high1 = zero_matrix();
    MatrixC second_low0 = zero_matrix(), second_low1 = zero_matrix();
    barrier();
    for (uint step = 0; step < kSteps; ++step) {
      put_part(read_part(block, step, id % kParts), block, step, id % kParts, put_at, kHigh + put_at);
      put_codes(x + 256 * g + kStep * step, kCodes);
      if (X == kQ16A256) put_codes(x + p.k + 256 * g + kStep * step, kCodesLow);
      if (step == 0) {
        if (has_minimum()) put_sums(x + p.k + 32 * g);
        if (id < kMatrixTokens) {
          float factor = factor_of(own_factors, g);
          tile[kFactors + id] = floatBitsToUint(factor);
          if (!is_usual_factor(factor)) tile[kUnusual] = 1u;
        }
      }
      barrier();
      UNROLLED for (uint k = 0; k < kStep / 32; ++k) {
        MatrixA high = load_a(kHigh + a_at + 8 * k, kPitch), low = load_a(a_at + 8 * k, kPitch);
        MatrixB x0 = load_b(b_at + 8 * k, kPitch), x1 = load_b(b_at + 16 * kPitch + 8 * k, kPitch);
        high0 = multiply_add(high, x0, high0);
        high1 = multiply_add(high, x1, high1);
        low0 = multiply_add(low, x0, low0);
        low1 = multiply_add(low, x1, low1);
        if (X == kQ16A256) {
          x0 = load_b(b_low_at + 8 * k, kPitch);
          x1 = load_b(b_low_at + 16 * kPitch + 8 * k, kPitch);
          second_high0 = multiply_add(high, x0, second_high0);
          second_high1 = multiply_add(high, x1, second_high1);
          second_low0 = multiply_add(low, x0, second_low0);
          second_low1 = multiply_add(low, x1, second_low1);
        }
      }
      if (has_minimum() && step == kSteps - 1) {
        MatrixA high = load_a(kHigh + a_at + kMinimums, kPitch), low = load_a(a_at + kMinimums, kPitch);
        MatrixB x0 = load_b(b_at + kMinimums, kPitch), x1 = load_b(b_at + 16 * kPitch + kMinimums, kPitch);
        second_high0 = multiply_add(high, x0, second_high0);
        second_high1 = multiply_add(high, x1, second_high1);
        second_low0 = multiply_add(low, x0, second_low0);
        second_low1 = multiply_add(low, x1, second_low1);
      }
      barrier();
    }
    // Through memory to the invocations: rows of w side by side, of a row of x each.
    store_c(own_tile, plus(times_256(high0), low0), 16);
    store_c(own_tile + 256, plus(times_256(high1), low1), 16);
    if (has_second()) {
      store_c(own_tile + 512, plus(times_256(second_high0), second_low0), 16);
      store_c(own_tile + 768, plus(times_256(second_high1), second_low1), 16);
    }
    subgroup_barrier();
    float v[16];
    UNROLLED for (uint n = 0; n < 16; ++n) {
      uint at = own_tile + 32 * n + lane;
      v[n] = value_of(int(tile[at]), has_second() ? int(tile[at + 512]) : 0, d);
      if (X == kQ16A256) is_usual = is_usual && is_usual_value(v[n]);
    }
    is_usual = is_usual && tile[kUnusual] == 0u;
    uint token = own_token + lane / 16;
    if (is_usual)
      UNROLLED for (uint n = 0; n < 16; ++n) acc[n] = usual_fma(v[n], uintBitsToFloat(tile[kFactors + token + 2 * n]), acc[n]);
    else
      UNROLLED for (uint n = 0; n < 16; ++n) acc[n] = ZRT_FMA(v[n], uintBitsToFloat(tile[kFactors + token + 2 * n]), acc[n]);
  }
  uint n_tokens = Words(p.n_rows).v[0];
  if (m >= p.m) return;
  float bias = p.bias != 0 ? Floats(p.bias).v[m] : 0.0;
  UNROLLED for (uint n = 0; n < 16; ++n) {
    uint t = first_t + own_token + lane / 16 + 2 * n;
    if (t < n_tokens) Floats(float_row(p.y, t, p.m)).v[m] = p.bias != 0 ? acc[n] + bias : acc[n];
  }
}
