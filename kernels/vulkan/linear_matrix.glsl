// Computes LINEAR for many rows of x, in groups of 256, by matrices of int8 (matrices.glsl). linear.glsl has the
// formula and the order of sums, groups.glsl the types of x.
// Grid: (rows of x / kMatrixTokens, rows of w / kMatrixRows). A workgroup computes kMatrixRows rows of w times
// kMatrixTokens rows of x; a subgroup computes 32 rows of w times 16 of x. A group is computed in steps. In a step the
// invocations write the weights (matrix_digits.glsl) and the codes of x to the workgroup's memory, for all subgroups,
// and load those of the next step. After its last step, the group's sums become floats. Every matrix gives an
// invocation the same elements: sums, scales and factors. So one invocation adds up an element of y from the first
// group to the last.
// Rows past the end of w repeat the last row. Rows past the end of x are whatever the memory of x has there. Neither is
// stored.
// The workgroup's memory is one array, so that matrices begin at multiples of 16 bytes. It holds two planes of weights,
// or one plane of codes and behind it the scales of their sub-blocks; then the codes of x; then the floats of a group:
// the scales of the rows of w, the scales of their minimums, and the factors of the rows of x; then whether some factor
// was not usual (accumulate.glsl). Included after PUSH.
const uint kScales = (2 * kMatrixRows + kMatrixTokens) * 44, kScalesOfMinimums = kScales + kMatrixRows,
           kFactors = kScalesOfMinimums + kMatrixRows, kUnusual = kFactors + kMatrixTokens;
shared uvec4 tile[kUnusual / 4 + 1];
#include "accumulate.glsl"
#include "matrices.glsl"
#include "matrix_digits.glsl"
const uint kHigh = kMatrixRows * kPitch, kCodes = 2 * kHigh, kCodesLow = kCodes + kMatrixTokens * kPitch;
// Pieces of 16 bytes of a row of codes in a step. Each invocation loads two of them: of q8a256 from two rows of x, of
// q16a256 one of the high digits and one of the low ones.
const uint kQuads = kStep / 16;

// What an invocation loads for one step: a part of the weights and two pieces of the codes of x; for the first step of
// a group also sums of codes, and a factor or scales.
struct Brought {
  RawPart part;
  uvec4 codes0, codes1, sums;
  uint scales;
  float factor;
};
// The addresses from which an invocation loads: its part of a row of w, its pieces of rows of x, and the row of w whose
// scales it loads.
struct From {
  uint64_t w, x0, x1, sums, factors, scales;
};
uint64_t row_of_w(uint m) { return p.w + uint64_t(min(m, p.m - 1)) * p.w_row_bytes; }
From from_of(uint first_m, uint64_t x) {
  uint id = gl_LocalInvocationID.x;
  uint64_t x0 = x + uint64_t(id / kQuads) * p.x_row_bytes + 16 * (id % kQuads);
  return From(row_of_w(first_m + id / kParts), x0,
              x0 + (X == kQ16A256 ? uint64_t(p.k) : uint64_t(kMatrixWidth / kQuads) * p.x_row_bytes),
              x + p.k + uint64_t(id / 2 % kMatrixTokens) * p.x_row_bytes + 16 * (id % 2),
              factors_of(x + uint64_t(id % kMatrixTokens) * p.x_row_bytes), row_of_w(first_m + id % kMatrixRows));
}
// Which invocations load what besides codes of x. The first kMatrixRows * kParts ones load a part of w. At the
// beginning of a group, the next kMatrixTokens ones load the factor of one row of x each, the next kMatrixRows ones
// load the scales of one row of w each, and the first 2 * kMatrixTokens ones load sums of codes. The numbers at which
// they begin are multiples of kMatrixTokens and kMatrixRows, so an invocation finds its row as the remainder of id by
// these.
const uint kFirstWithFactor = kMatrixRows * kParts, kFirstWithScales = kFirstWithFactor + kMatrixTokens;
bool has_part() { return gl_LocalInvocationID.x < kFirstWithFactor; }
bool has_factor() { return !has_part() && gl_LocalInvocationID.x < kFirstWithScales; }
bool has_scales() {
  return gl_LocalInvocationID.x >= kFirstWithScales && gl_LocalInvocationID.x < kFirstWithScales + kMatrixRows;
}
// Loads what a step needs.
void bring(From from, uint g, uint step, inout Brought next) {
  uint at = 256 * g + kStep * step;
  if (has_part()) next.part = read_part(from.w + g * block_bytes(), step, gl_LocalInvocationID.x % kParts);
  next.codes0 = Quads(from.x0 + at).v[0];
  next.codes1 = Quads(from.x1 + at).v[0];
  if (step > 0) return;
  if (has_minimum() && gl_LocalInvocationID.x < 2 * kMatrixTokens) next.sums = Quads(from.sums + 32 * g).v[0];
  if (has_factor()) next.factor = factor_of(from.factors, g);
  if (has_scales()) next.scales = read_scales(from.scales + g * block_bytes());
}
// Writes what was loaded for a step to the workgroup's memory.
void put_down(From from, uint g, uint step, Brought next) {
  uint id = gl_LocalInvocationID.x, at = id / kParts * kPitch, codes_at = kCodes + id / kQuads * kPitch + 4 * (id % kQuads);
  const uint kRows = kMatrixWidth / kQuads * kPitch;
  if (has_part())
    put_part(next.part, from.w + g * block_bytes(), step, id % kParts, at, kHigh + at, kHigh + id / kParts);
  put(codes_at, next.codes0);
  put(codes_at + (X == kQ16A256 ? kCodesLow - kCodes : kRows), next.codes1);
  if (step > 0) return;
  if (has_minimum() && id < 2 * kMatrixTokens) put(kCodes + id / 2 * kPitch + kMinimumsHigh + 4 * (id % 2), next.sums);
  if (has_factor()) {
    WORD(kFactors + id % kMatrixTokens) = floatBitsToUint(next.factor);
    if (!is_usual_factor(next.factor)) WORD(kUnusual) = 1u;
  }
  if (has_scales()) {
    vec2 d = scales_of(next.scales);
    WORD(kScales + id % kMatrixRows) = floatBitsToUint(d.x);
    WORD(kScalesOfMinimums + id % kMatrixRows) = floatBitsToUint(d.y);
  }
}

// Adds a group to eight sums: acc = fma(v, f, acc). The slow way, for sums that may be denormals, is rare, so it is a
// loop: unrolled, its instructions would lie between those of the fast way. The loop always works on element 0 and
// rotates the arrays, because an array with a variable index would have to lie in memory.
void accumulate(inout float acc[8], float v[8], float f[8], inout bool is_usual) {
  if (X == kQ16A256)
    UNROLLED for (uint n = 0; n < 8; ++n) is_usual = is_usual && is_usual_value(v[n]);
  if (is_usual) {
    UNROLLED for (uint n = 0; n < 8; ++n) acc[n] = usual_fma(v[n], f[n], acc[n]);
    return;
  }
  [[dont_unroll]] for (uint n = 0; n < 8; ++n) {
    float first = ZRT_FMA(v[0], f[0], acc[0]);
    UNROLLED for (uint i = 0; i < 7; ++i) {
      acc[i] = acc[i + 1];
      v[i] = v[i + 1];
      f[i] = f[i + 1];
    }
    acc[7] = first;
  }
}

void main() {
  uint id = gl_LocalInvocationID.x, subgroup = id / 32, n_tokens = Words(p.n_rows).v[0], n_groups = p.k / 256;
  uint first_m = gl_WorkGroupID.y * kMatrixRows, first_t = gl_WorkGroupID.x * kMatrixTokens;
  uint own_row = 32 * (subgroup % 2), own_token = 16 * (subgroup / 2);  // the first rows of the subgroup, in the tile
  uint a_at = own_row * kPitch, a_high_at = kHigh + a_at, next_a = 16 * kPitch, b_at = kCodes + own_token * kPitch;
  From from = from_of(first_m, p.x + uint64_t(first_t) * p.x_row_bytes);
  Brought next;
  bring(from, 0, 0, next);
  bool is_usual = true, has_tokens = first_t + own_token < n_tokens;
  float acc0[8], acc1[8];
  UNROLLED for (uint n = 0; n < 8; ++n) acc0[n] = acc1[n] = 0.0;
  if (id == 0) WORD(kUnusual) = 0u;
  for (uint g = 0; g < n_groups; ++g) {
    MatrixC sum0 = zero_matrix(), sum1 = zero_matrix(), high0 = zero_matrix(), high1 = zero_matrix();
    MatrixC second0 = zero_matrix(), second1 = zero_matrix();
    MatrixC second_high0 = zero_matrix(), second_high1 = zero_matrix();
    barrier();
    for (uint step = 0; step < kSteps; ++step) {
      put_down(from, g, step, next);
      barrier();
      bool is_last = step == kSteps - 1;
      bring(from, is_last ? min(g + 1, n_groups - 1) : g, is_last ? 0 : step + 1, next);
      if (has_tokens)
        UNROLLED for (uint k = 0; k < kStep / 4; k += 8) {
          MatrixB x = load_b(b_at + k, kPitch);
          MatrixA a0 = load_a(a_at + k, kPitch), a1 = load_a(a_at + next_a + k, kPitch);
          if (has_sub_blocks()) {
            uint scales_at = kHigh + kMatrixRows * (k / 8) + own_row;
            sum0 = plus(sum0, times_each(multiply_add(a0, x, zero_matrix()), load_c(scales_at, 0)));
            sum1 = plus(sum1, times_each(multiply_add(a1, x, zero_matrix()), load_c(scales_at + 16, 0)));
          } else {
            MatrixA a0_high = load_a(a_high_at + k, kPitch), a1_high = load_a(a_high_at + next_a + k, kPitch);
            sum0 = multiply_add(a0, x, sum0);
            sum1 = multiply_add(a1, x, sum1);
            high0 = multiply_add(a0_high, x, high0);
            high1 = multiply_add(a1_high, x, high1);
            if (X == kQ16A256) {
              x = load_b(kCodesLow - kCodes + b_at + k, kPitch);
              second0 = multiply_add(a0, x, second0);
              second1 = multiply_add(a1, x, second1);
              second_high0 = multiply_add(a0_high, x, second_high0);
              second_high1 = multiply_add(a1_high, x, second_high1);
            }
          }
        }
      if (!is_last) barrier();
    }
    if (!has_sub_blocks()) {
      sum0 = plus(times_256(high0), sum0);
      sum1 = plus(times_256(high1), sum1);
    }
    if (has_minimum()) {
      MatrixB sums = load_b(b_at + kMinimumsHigh, kPitch);
      second0 = multiply_add(load_a(a_at + kMinimumsLow, kPitch), sums, zero_matrix());
      second1 = multiply_add(load_a(a_at + next_a + kMinimumsLow, kPitch), sums, zero_matrix());
      second_high0 = multiply_add(load_a(a_at + kMinimumsHigh, kPitch), sums, zero_matrix());
      second_high1 = multiply_add(load_a(a_at + next_a + kMinimumsHigh, kPitch), sums, zero_matrix());
    }
    if (has_second()) {
      second0 = plus(times_256(second_high0), second0);
      second1 = plus(times_256(second_high1), second1);
    }
    is_usual = is_usual && WORD(kUnusual) == 0u;
    MatrixC factors = load_same_rows(kFactors + own_token);
    float v[8], f[8];
#define VALUE(n)                                                                                        \
  f[n] = intBitsToFloat(element(factors, n));                                                           \
  v[n] = value_of(element(sum, n), element(second, n),                                                  \
                  vec2(intBitsToFloat(element(scales, n)), intBitsToFloat(element(of_minimums, n))));
#define JOIN(own_sum, own_second, row, acc)                                                           \
  {                                                                                                   \
    MatrixC sum = own_sum, second = own_second;                                                       \
    MatrixC scales = load_c(kScales + row, 0), of_minimums = load_c(kScalesOfMinimums + row, 0);      \
    VALUE(0) VALUE(1) VALUE(2) VALUE(3) VALUE(4) VALUE(5) VALUE(6) VALUE(7)                           \
    accumulate(acc, v, f, is_usual);                                                                  \
  }
    JOIN(sum0, second0, own_row, acc0)
    JOIN(sum1, second1, own_row + 16, acc1)
  }
  barrier();
  for (uint i = id; i < 256; i += kMatrixWidth) WORD(i) = i;
  barrier();
  MatrixC places = load_c(0, 16);  // each element is the number of its row of w plus 16 times that of its row of x
#define WRITE(n)                                                                                             \
  {                                                                                                          \
    uint m = first_m + own_row + uint(element(places, n)) % 16;                                              \
    uint t = first_t + own_token + uint(element(places, n)) / 16;                                            \
    Floats y = Floats(float_row(p.y, t, p.m)), bias = Floats(p.bias);                                        \
    if (t < n_tokens && m < p.m) y.v[m] = p.bias != 0 ? acc0[n] + bias.v[m] : acc0[n];                       \
    if (t < n_tokens && m + 16 < p.m) y.v[m + 16] = p.bias != 0 ? acc1[n] + bias.v[m + 16] : acc1[n];        \
  }
  WRITE(0) WRITE(1) WRITE(2) WRITE(3) WRITE(4) WRITE(5) WRITE(6) WRITE(7)
}
