// LINEAR for many rows of x, of groups of 256, by matrices of int8; linear.glsl says what it computes and in which
// order. A workgroup makes kMatrixRows rows of w times kMatrixTokens rows of x, a subgroup 32 of each. In a step the
// workgroup's memory gets the digits of the weights (matrix_digits.glsl) and the codes of x, for all of its subgroups;
// what the next step needs is on its way meanwhile. After a group come floats. Matrices have names: a driver keeps an
// array of them in memory.
// Rows past the end of w repeat the last one; those of x are what lies there, within its memory. Neither is stored.
// Grid: (rows of x / kMatrixTokens, rows of w / kMatrixRows). Included after PUSH.
// Digits, low and high, and codes; then sums, two matrices of a subgroup. Behind them the factors of the rows of x, and
// whether one of them was not usual (accumulate.glsl). It is one array, so that matrices begin where 16 bytes do.
const uint kFactors = (2 * kMatrixRows + kMatrixTokens) * 44, kUnusual = kFactors + kMatrixTokens;
shared uvec4 tile[kUnusual / 4 + 1];
#include "accumulate.glsl"
#include "matrices.glsl"
#include "matrix_digits.glsl"
const uint kHigh = kMatrixRows * kPitch, kCodes = 2 * kHigh, kCodesLow = kCodes + kMatrixTokens * kPitch;
const uint kQuads = kStep / 16;  // of a row of codes in a step: four for an invocation, of q16a256 two of each plane

// What an invocation brings of a step, and with the first one of a group.
struct Brought {
  RawPart part;
  uvec4 codes0, codes1, codes2, codes3, sums;
  float factor;
};
// Where it reads that: its parts of a row of w and of rows of x.
struct From {
  uint64_t w, x0, x1, x2, x3, sums, factors;
};
From from_of(uint64_t w, uint64_t x) {
  uint id = gl_LocalInvocationID.x;
  uint64_t x0 = x + uint64_t(id / kQuads) * p.x_row_bytes + 16 * (id % kQuads);
  uint64_t rows = uint64_t(kMatrixWidth / kQuads) * p.x_row_bytes, x2 = x0 + (X == kQ16A256 ? uint64_t(p.k) : 2 * rows);
  return From(w, x0, x0 + rows, x2, x2 + rows, x + p.k + uint64_t(id / 2 % kMatrixTokens) * p.x_row_bytes + 16 * (id % 2),
              factors_of(x + uint64_t(id % kMatrixTokens) * p.x_row_bytes));
}
void bring(From from, uint g, uint step, inout Brought next) {
  uint at = 256 * g + kStep * step;
  next.part = read_part(from.w + uint64_t(g) * block_bytes(), step, gl_LocalInvocationID.x % kParts);
  next.codes0 = Quads(from.x0 + at).v[0];
  next.codes1 = Quads(from.x1 + at).v[0];
  next.codes2 = Quads(from.x2 + at).v[0];
  next.codes3 = Quads(from.x3 + at).v[0];
  if (step > 0) return;
  if (has_minimum()) next.sums = Quads(from.sums + 32 * g).v[0];
  next.factor = factor_of(from.factors, g);
}
void put_down(From from, uint g, uint step, Brought next) {
  uint id = gl_LocalInvocationID.x, at = id / kParts * kPitch, codes_at = id / kQuads * kPitch + 4 * (id % kQuads);
  const uint kRows = kMatrixWidth / kQuads * kPitch, kThird = X == kQ16A256 ? kCodesLow : kCodes + 2 * kRows;
  put_part(next.part, from.w + uint64_t(g) * block_bytes(), step, id % kParts, at, kHigh + at);
  put(kCodes + codes_at, next.codes0);
  put(kCodes + kRows + codes_at, next.codes1);
  put(kThird + codes_at, next.codes2);
  put(kThird + kRows + codes_at, next.codes3);
  if (step > 0) return;
  if (has_minimum() && id < 2 * kMatrixTokens) put(kCodes + id / 2 * kPitch + kMinimums + 4 * (id % 2), next.sums);
  if (id < kMatrixTokens) {
    WORD(kFactors + id) = floatBitsToUint(next.factor);
    if (!is_usual_factor(next.factor)) WORD(kUnusual) = 1u;
  }
}

// To eight sums of these names: the products of what is around under the names a0_high to a1_low with x0 and x1.
#define ADD_PRODUCTS(high, low)                        \
  high##00 = multiply_add(a0_high, x0, high##00);      \
  low##00 = multiply_add(a0_low, x0, low##00);         \
  high##10 = multiply_add(a1_high, x0, high##10);      \
  low##10 = multiply_add(a1_low, x0, low##10);         \
  high##01 = multiply_add(a0_high, x1, high##01);      \
  low##01 = multiply_add(a0_low, x1, low##01);         \
  high##11 = multiply_add(a1_high, x1, high##11);      \
  low##11 = multiply_add(a1_low, x1, low##11);

// Of 16 by 16 sums an invocation has a row of w and 8 rows of x.
void join(uint sums, uint scales, uint token, inout bool is_usual, inout float acc[8]) {
  uint lane = gl_LocalInvocationID.x % 32;
  vec2 d = scales_of(scales);
  float v[8];
  UNROLLED for (uint n = 0; n < 8; ++n) {
    uint at = sums + (2 * n + lane / 16) * kSumPitch + lane % 16;
    v[n] = value_of(int(WORD(at)), has_second() ? int(WORD(at + kSums)) : 0, d);
    if (X == kQ16A256) is_usual = is_usual && is_usual_value(v[n]);
  }
  uint factors = kFactors + token + lane / 16;
  if (is_usual)
    UNROLLED for (uint n = 0; n < 8; ++n) acc[n] = usual_fma(v[n], uintBitsToFloat(WORD(factors + 2 * n)), acc[n]);
  else
    UNROLLED for (uint n = 0; n < 8; ++n) acc[n] = ZRT_FMA(v[n], uintBitsToFloat(WORD(factors + 2 * n)), acc[n]);
}
void write(float acc[8], uint m, uint first_t, uint n_tokens) {
  if (m >= p.m) return;
  float bias = p.bias != 0 ? Floats(p.bias).v[m] : 0.0;
  UNROLLED for (uint n = 0; n < 8; ++n) {
    uint t = first_t + gl_LocalInvocationID.x % 32 / 16 + 2 * n;
    if (t < n_tokens) Floats(float_row(p.y, t, p.m)).v[m] = p.bias != 0 ? acc[n] + bias : acc[n];
  }
}

void main() {
  uint id = gl_LocalInvocationID.x, subgroup = id / 32, lane = id % 32, n_tokens = Words(p.n_rows).v[0];
  uint first_m = gl_WorkGroupID.y * kMatrixRows, first_t = gl_WorkGroupID.x * kMatrixTokens;
  uint own_row = 32 * (subgroup % 2), own_token = 32 * (subgroup / 2);  // of the workgroup's
  uint m = first_m + own_row + lane % 16, n_groups = p.k / 256, own_sums = subgroup * 2 * kSums;
  uint a_at = own_row * kPitch, a_high_at = kHigh + a_at;
  uint b_at = kCodes + own_token * kPitch, b_low_at = kCodesLow + own_token * kPitch;
  uint64_t own_w = p.w + uint64_t(min(m, p.m - 1)) * p.w_row_bytes;
  uint64_t second_w = p.w + uint64_t(min(m + 16, p.m - 1)) * p.w_row_bytes;
  From from = from_of(p.w + uint64_t(min(first_m + id / kParts, p.m - 1)) * p.w_row_bytes,
                      p.x + uint64_t(first_t) * p.x_row_bytes);
  Brought next;
  bring(from, 0, 0, next);
  bool is_usual = true, has_tokens = first_t + own_token < n_tokens;
  float acc00[8], acc01[8], acc10[8], acc11[8];
  UNROLLED for (uint n = 0; n < 8; ++n) acc00[n] = acc01[n] = acc10[n] = acc11[n] = 0.0;
  if (id == 0) WORD(kUnusual) = 0u;
  for (uint g = 0; g < n_groups; ++g) {
    uint scales0 = read_scales(own_w + uint64_t(g) * block_bytes());
    uint scales1 = read_scales(second_w + uint64_t(g) * block_bytes());
    MatrixC high00 = zero_matrix(), high01 = zero_matrix(), high10 = zero_matrix(), high11 = zero_matrix();
    MatrixC low00 = zero_matrix(), low01 = zero_matrix(), low10 = zero_matrix(), low11 = zero_matrix();
    MatrixC second_high00 = zero_matrix(), second_high01 = zero_matrix();
    MatrixC second_high10 = zero_matrix(), second_high11 = zero_matrix();
    MatrixC second_low00 = zero_matrix(), second_low01 = zero_matrix();
    MatrixC second_low10 = zero_matrix(), second_low11 = zero_matrix();
    barrier();
    for (uint step = 0; step < kSteps; ++step) {
      put_down(from, g, step, next);
      barrier();
      bool is_last = step == kSteps - 1;
      bring(from, is_last ? min(g + 1, n_groups - 1) : g, is_last ? 0 : step + 1, next);
      if (has_tokens)
        UNROLLED for (uint k = 0; k < kStep / 4; k += 8) {
          MatrixA a0_high = load_a(a_high_at + k, kPitch), a0_low = load_a(a_at + k, kPitch);
          MatrixA a1_high = load_a(a_high_at + 16 * kPitch + k, kPitch), a1_low = load_a(a_at + 16 * kPitch + k, kPitch);
          MatrixB x0 = load_b(b_at + k, kPitch), x1 = load_b(b_at + 16 * kPitch + k, kPitch);
          ADD_PRODUCTS(high, low)
          if (X == kQ16A256) {
            x0 = load_b(b_low_at + k, kPitch);
            x1 = load_b(b_low_at + 16 * kPitch + k, kPitch);
            ADD_PRODUCTS(second_high, second_low)
          }
        }
      if (!is_last) barrier();
    }
    high00 = plus(times_256(high00), low00);
    high01 = plus(times_256(high01), low01);
    high10 = plus(times_256(high10), low10);
    high11 = plus(times_256(high11), low11);
    if (has_minimum()) {
      MatrixA a0_high = load_a(a_high_at + kMinimums, kPitch), a0_low = load_a(a_at + kMinimums, kPitch);
      MatrixA a1_high = load_a(a_high_at + 16 * kPitch + kMinimums, kPitch);
      MatrixA a1_low = load_a(a_at + 16 * kPitch + kMinimums, kPitch);
      MatrixB x0 = load_b(b_at + kMinimums, kPitch), x1 = load_b(b_at + 16 * kPitch + kMinimums, kPitch);
      ADD_PRODUCTS(second_high, second_low)
    }
    if (has_second()) {
      second_high00 = plus(times_256(second_high00), second_low00);
      second_high01 = plus(times_256(second_high01), second_low01);
      second_high10 = plus(times_256(second_high10), second_low10);
      second_high11 = plus(times_256(second_high11), second_low11);
    }
    barrier();
    is_usual = is_usual && WORD(kUnusual) == 0u;
    // Through memory to the invocations: rows of w side by side, of a row of x each.
#define JOIN(high, second_high, scales, acc, token)                   \
  store_c(own_sums, high, kSumPitch);                                 \
  if (has_second()) store_c(own_sums + kSums, second_high, kSumPitch); \
  subgroup_barrier();                                                 \
  join(own_sums, scales, token, is_usual, acc);                       \
  subgroup_barrier();
    JOIN(high00, second_high00, scales0, acc00, own_token)
    JOIN(high10, second_high10, scales1, acc10, own_token)
    JOIN(high01, second_high01, scales0, acc01, own_token + 16)
    JOIN(high11, second_high11, scales1, acc11, own_token + 16)
  }
  write(acc00, m, first_t + own_token, n_tokens);
  write(acc10, m + 16, first_t + own_token, n_tokens);
  write(acc01, m, first_t + own_token + 16, n_tokens);
  write(acc11, m + 16, first_t + own_token + 16, n_tokens);
}
