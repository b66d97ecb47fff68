// LINEAR for few rows of x, of groups of 256, by matrices of int8; linear.glsl says what it computes and in which
// order. A workgroup makes 16 rows of w times kMatrixFewTokens rows of x. Each of its subgroups makes v of a group,
// with the digits of the weights (matrix_digits.glsl) in a part of memory of its own and x as it lies; then an
// invocation has an output and goes through these groups in order.
// Rows past the end of w repeat the last one; those of x are what lies there, within its memory. Neither is stored.
// Grid: (rows of x / kMatrixFewTokens, rows of w / 16). Included after PUSH.
const uint kSubgroups = kMatrixWidth / 32, kPlane = 16 * 44, kRegion = 2 * kPlane;
shared uvec4 tile[(kSubgroups * kRegion + 3) / 4];  // digits, low and high; then sums
#include "accumulate.glsl"
#include "matrices.glsl"
#include "matrix_digits.glsl"
const uint kPartsOfLane = 16 * kParts / 32;

void main() {
  uint id = gl_LocalInvocationID.x, subgroup = id / 32, lane = id % 32, base = subgroup * kRegion;
  uint first_m = gl_WorkGroupID.y * 16, first_t = gl_WorkGroupID.x * kMatrixFewTokens;
  uint m = first_m + id % 16, t = first_t + id / 16, n_groups = p.k / 256, stride = p.x_row_bytes / 4;
  uint64_t own_w = p.w + uint64_t(min(m, p.m - 1)) * p.w_row_bytes, x = p.x + uint64_t(first_t) * p.x_row_bytes;
  uint64_t own_factors = factors_of(p.x + uint64_t(t) * p.x_row_bytes);
  uint64_t w[kPartsOfLane];
  UNROLLED for (uint j = 0; j < kPartsOfLane; ++j)
    w[j] = p.w + uint64_t(min(first_m + (lane + 32 * j) / kParts, p.m - 1)) * p.w_row_bytes;
  bool is_usual = true;
  float acc = 0.0;
  for (uint first = 0; first < n_groups; first += kSubgroups) {
    uint g = min(first + subgroup, n_groups - 1);
    uint scales = read_scales(own_w + uint64_t(g) * block_bytes());
    float factors[kSubgroups];
    UNROLLED for (uint s = 0; s < kSubgroups; ++s) factors[s] = factor_of(own_factors, min(first + s, n_groups - 1));
    RawPart parts[4 * kPartsOfLane];  // of all steps, so that they are on their way at once
    UNROLLED for (uint i = 0; i < 4 * kPartsOfLane; ++i)
      if (i < kSteps * kPartsOfLane)
        parts[i] = read_part(w[i % kPartsOfLane] + uint64_t(g) * block_bytes(), i / kPartsOfLane, lane % kParts);
    MatrixB ahead[8];  // of q8a256 all codes of the group
    if (X == kQ8A256)
      UNROLLED for (uint k = 0; k < 8; ++k) ahead[k] = load_b_from(x + 256 * g + 32 * k, stride);
    MatrixC high_sums = zero_matrix(), low_sums = zero_matrix();
    MatrixC second_high = zero_matrix(), second_low = zero_matrix();
    UNROLLED for (uint step = 0; step < 4; ++step) {
      if (step >= kSteps) break;
      UNROLLED for (uint j = 0; j < kPartsOfLane; ++j) {
        uint at = base + (lane + 32 * j) / kParts * kPitch;
        put_part(parts[step * kPartsOfLane + j], w[j] + uint64_t(g) * block_bytes(), step, lane % kParts, at,
                 at + kPlane);
      }
      subgroup_barrier();
      UNROLLED for (uint k = 0; k < kStep / 32; ++k) {
        uint64_t from = x + 256 * g + kStep * step + 32 * k;
        MatrixA high = load_a(base + kPlane + 8 * k, kPitch), low = load_a(base + 8 * k, kPitch);
        MatrixB codes;
        if (X == kQ8A256)
          codes = ahead[step * (kStep / 32) + k];
        else
          codes = load_b_from(from, stride);
        high_sums = multiply_add(high, codes, high_sums);
        low_sums = multiply_add(low, codes, low_sums);
        if (X == kQ16A256) {
          codes = load_b_from(from + p.k, stride);
          second_high = multiply_add(high, codes, second_high);
          second_low = multiply_add(low, codes, second_low);
        }
      }
      subgroup_barrier();
    }
    if (has_minimum()) {
      MatrixB sums = load_b_from(x + p.k + 32 * g, stride);
      second_high = multiply_add(load_a(base + kPlane + kMinimums, kPitch), sums, second_high);
      second_low = multiply_add(load_a(base + kMinimums, kPitch), sums, second_low);
      subgroup_barrier();
    }
    store_c(base, plus(times_256(high_sums), low_sums), kSumPitch);
    if (has_second()) store_c(base + kSums, plus(times_256(second_high), second_low), kSumPitch);
    subgroup_barrier();
    vec2 d = scales_of(scales);
    UNROLLED for (uint n = 0; n < 8; ++n) {
      uint at = base + (2 * n + lane / 16) * kSumPitch + lane % 16;
      WORD(at) = floatBitsToUint(value_of(int(WORD(at)), has_second() ? int(WORD(at + kSums)) : 0, d));
    }
    barrier();
    UNROLLED for (uint s = 0; s < kSubgroups; ++s) {
      if (first + s >= n_groups) break;
      float v = uintBitsToFloat(WORD(s * kRegion + id / 16 * kSumPitch + id % 16));
      is_usual = is_usual && is_usual_factor(factors[s]) && (X != kQ16A256 || is_usual_value(v));
      acc = is_usual ? usual_fma(v, factors[s], acc) : ZRT_FMA(v, factors[s], acc);
    }
    barrier();
  }
  if (m >= p.m || t >= Words(p.n_rows).v[0]) return;
  Floats(float_row(p.y, t, p.m)).v[m] = p.bias != 0 ? acc + Floats(p.bias).v[m] : acc;
}
