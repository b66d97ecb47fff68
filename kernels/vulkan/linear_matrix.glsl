// LINEAR for many rows of x, of groups of 256, by matrices of int8; linear.glsl says what it computes and in which
// order. A workgroup makes kMatrixRows rows of w times kMatrixTokens rows of x, a subgroup 16 of w and 32 of x. In a
// step the workgroup's memory gets the digits of the weights (matrix_digits.glsl) and the codes of x, for all of its
// subgroups; what the next step needs is on its way meanwhile. After a group an invocation has a row of w and 16 rows of
// x, and goes on with floats.
// Rows past the end of w repeat the last one; those of x are what lies there, within its memory. Neither is stored.
// Grid: (rows of x / kMatrixTokens, rows of w / kMatrixRows). Included after PUSH.
// Digits, low and high, and codes; then sums, four matrices of a subgroup. Behind them the factors of the rows of x, and
// whether one of them was not usual (accumulate.glsl). It is one array, so that matrices begin where 16 bytes do.
const uint kFactors = 4 * 20 * 16 * kMatrixWidth / 32, kUnusual = kFactors + kMatrixTokens;
shared uvec4 tile[kUnusual / 4 + 1];
#include "accumulate.glsl"
#include "matrices.glsl"
#include "matrix_digits.glsl"
const uint kHigh = kMatrixRows * kPitch, kCodes = 2 * kHigh, kCodesLow = kCodes + kMatrixTokens * kPitch;
const uint kQuads = kStep / 16;  // of a row of codes in a step: two for an invocation, of q16a256 one of each plane

// What an invocation brings of a step, and with the first one of a group.
struct Brought {
  RawPart part;
  uvec4 codes, second_codes, sums;
  float factor;
};
// Where it reads that: its parts of a row of w and of rows of x.
struct From {
  uint64_t w, x, second_x, sums, factors;
};
From from_of(uint64_t w, uint64_t x) {
  uint id = gl_LocalInvocationID.x;
  uint64_t own_x = x + uint64_t(id / kQuads) * p.x_row_bytes + 16 * (id % kQuads);
  uint64_t second_x = own_x + (X == kQ16A256 ? uint64_t(p.k) : uint64_t(kMatrixWidth / kQuads) * p.x_row_bytes);
  return From(w, own_x, second_x, x + p.k + uint64_t(id / 2 % kMatrixTokens) * p.x_row_bytes + 16 * (id % 2),
              factors_of(x + uint64_t(id % kMatrixTokens) * p.x_row_bytes));
}
void bring(From from, uint g, uint step, inout Brought next) {
  uint at = 256 * g + kStep * step;
  next.part = read_part(from.w + uint64_t(g) * block_bytes(), step, gl_LocalInvocationID.x % kParts);
  next.codes = Quads(from.x + at).v[0];
  next.second_codes = Quads(from.second_x + at).v[0];
  if (step > 0) return;
  if (has_minimum()) next.sums = Quads(from.sums + 32 * g).v[0];
  next.factor = factor_of(from.factors, g);
}
void put_down(From from, uint g, uint step, Brought next) {
  uint id = gl_LocalInvocationID.x, at = id / kParts * kPitch, codes_at = id / kQuads * kPitch + 4 * (id % kQuads);
  put_part(next.part, from.w + uint64_t(g) * block_bytes(), step, id % kParts, at, kHigh + at);
  put(kCodes + codes_at, next.codes);
  put((X == kQ16A256 ? kCodesLow : kCodes + kMatrixWidth / kQuads * kPitch) + codes_at, next.second_codes);
  if (step > 0) return;
  if (has_minimum() && id < 2 * kMatrixTokens) put(kCodes + id / 2 * kPitch + kMinimums + 4 * (id % 2), next.sums);
  if (id < kMatrixTokens) {
    WORD(kFactors + id) = floatBitsToUint(next.factor);
    if (!is_usual_factor(next.factor)) WORD(kUnusual) = 1u;
  }
}

float v_at(uint at, vec2 d) { return value_of(int(WORD(at)), has_second() ? int(WORD(at + 2 * kSums)) : 0, d); }

void main() {
  uint id = gl_LocalInvocationID.x, subgroup = id / 32, lane = id % 32;
  uint first_m = gl_WorkGroupID.y * kMatrixRows, first_t = gl_WorkGroupID.x * kMatrixTokens;
  uint own_row = 16 * (subgroup % 4), own_token = 32 * (subgroup / 4);  // of the workgroup's
  uint m = first_m + own_row + lane % 16, n_groups = p.k / 256, own_sums = subgroup * 4 * kSums;
  uint a_at = own_row * kPitch;
  uint b_at = kCodes + own_token * kPitch, b_low_at = kCodesLow + own_token * kPitch;
  uint64_t own_w = p.w + uint64_t(min(m, p.m - 1)) * p.w_row_bytes;
  From from = from_of(p.w + uint64_t(min(first_m + id / kParts, p.m - 1)) * p.w_row_bytes,
                      p.x + uint64_t(first_t) * p.x_row_bytes);
  Brought next;
  bring(from, 0, 0, next);
  bool is_usual = true;
  float acc[16], v[16], factor[16];
#define CLEAR(n) acc[n] = 0.0;
  EACH_OF_16(CLEAR)
  if (id == 0) WORD(kUnusual) = 0u;
  for (uint g = 0; g < n_groups; ++g) {
    uint scales = read_scales(own_w + uint64_t(g) * block_bytes());
    MatrixC first_high0 = zero_matrix(), first_high1 = zero_matrix();
    MatrixC first_low0 = zero_matrix(), first_low1 = zero_matrix();
    MatrixC second_high0 = zero_matrix(), second_high1 = zero_matrix();
    MatrixC second_low0 = zero_matrix(), second_low1 = zero_matrix();
    barrier();
    for (uint step = 0; step < kSteps; ++step) {
      put_down(from, g, step, next);
      barrier();
      bool is_last = step == kSteps - 1;
      bring(from, is_last ? min(g + 1, n_groups - 1) : g, is_last ? 0 : step + 1, next);
// The words k.. of rows of w by those of x that begin at `from`, into sums with a name that begins with `into`.
#define MULTIPLY(k, from, into)                                                                      \
  {                                                                                                  \
    MatrixA high = load_a(kHigh + a_at + k, kPitch), low = load_a(a_at + k, kPitch);                 \
    MatrixB x0 = load_b(from + k, kPitch), x1 = load_b(from + 16 * kPitch + k, kPitch);              \
    into##high0 = multiply_add(high, x0, into##high0);                                               \
    into##high1 = multiply_add(high, x1, into##high1);                                               \
    into##low0 = multiply_add(low, x0, into##low0);                                                  \
    into##low1 = multiply_add(low, x1, into##low1);                                                  \
  }
#define MULTIPLY_CODES(n)                                        \
  if (n < kStep / 32) {                                          \
    MULTIPLY(8 * n, b_at, first_)                                \
    if (X == kQ16A256) MULTIPLY(8 * n, b_low_at, second_)        \
  }
      EACH_OF_4(MULTIPLY_CODES)
      if (has_minimum() && is_last) MULTIPLY(kMinimums, b_at, second_)
      barrier();
    }
    // Through memory to the invocations: rows of w side by side, of a row of x each.
    store_c(own_sums, plus(times_256(first_high0), first_low0), kSumPitch);
    store_c(own_sums + kSums, plus(times_256(first_high1), first_low1), kSumPitch);
    if (has_second()) {
      store_c(own_sums + 2 * kSums, plus(times_256(second_high0), second_low0), kSumPitch);
      store_c(own_sums + 3 * kSums, plus(times_256(second_high1), second_low1), kSumPitch);
    }
    subgroup_barrier();
    vec2 d = scales_of(scales);
    uint sums = own_sums + lane / 16 * kSumPitch + lane % 16, factors = kFactors + own_token + lane / 16;
#define READ(n)                                                                               \
  factor[n] = uintBitsToFloat(WORD(factors + 2 * n));           \
  v[n] = v_at(sums + 2 * n * kSumPitch, d);                     \
  if (X == kQ16A256) is_usual = is_usual && is_usual_value(v[n]);
#define ADD(n) acc[n] = usual_fma(v[n], factor[n], acc[n]);
#define ADD_ANY(n) acc[n] = ZRT_FMA(v[n], factor[n], acc[n]);
    EACH_OF_16(READ)
    is_usual = is_usual && WORD(kUnusual) == 0u;
    if (is_usual) {
      EACH_OF_16(ADD)
    } else {
      EACH_OF_16(ADD_ANY)
    }
  }
  uint n_tokens = Words(p.n_rows).v[0];
  if (m >= p.m) return;
  float bias = p.bias != 0 ? Floats(p.bias).v[m] : 0.0;
  uint t = first_t + own_token + lane / 16;
#define WRITE(n) \
  if (t + 2 * n < n_tokens) Floats(float_row(p.y, t + 2 * n, p.m)).v[m] = p.bias != 0 ? acc[n] + bias : acc[n];
  EACH_OF_16(WRITE)
}
