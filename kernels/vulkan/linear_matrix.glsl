// LINEAR for many rows of x, of groups of 256, by matrices of int8; linear.glsl says what it computes and in which
// order. A workgroup makes kMatrixRows rows of w times kMatrixTokens rows of x, a subgroup 16 kRowTiles of w and 32 of x.
// In a step the workgroup's memory gets the digits of the weights (matrix_digits.glsl) and the codes of x, for all of
// its subgroups; what the next step needs is on its way meanwhile. After a group an invocation has a row of w and 8 rows
// of x of each 16 by 16 sums, and goes on with floats.
// Rows past the end of w repeat the last one; those of x are what lies there, within its memory. Neither is stored.
// Grid: (rows of x / kMatrixTokens, rows of w / kMatrixRows). Included after PUSH.
// Digits, low and high, and codes; then sums. Behind them the factors of the rows of x, and whether one of them was not
// usual (accumulate.glsl). It is one array, so that a matrix is read from where 16 bytes begin.
const uint kFactors = (2 * kMatrixRows + kMatrixTokens) * 44, kUnusual = kFactors + kMatrixTokens;
shared uvec4 tile[(kUnusual + 1 + 3) / 4];
#include "accumulate.glsl"
#include "matrices.glsl"
#include "matrix_digits.glsl"
const uint kHigh = kMatrixRows * kPitch, kCodes = 2 * kHigh, kCodesLow = kCodes + kMatrixTokens * kPitch;
const uint kTokenTiles = 2, kRowTiles = kMatrixRows * kMatrixTokens / (kMatrixWidth / 32 * 256 * kTokenTiles);
const uint kTiles = kRowTiles * kTokenTiles, kRowGroups = kMatrixRows / (16 * kRowTiles);
const uint kQuads = kStep / 16;                     // of a row of codes in a step
const uint kPlanes = X == kQ16A256 ? 2 : 1, kTurns = kPlanes * kMatrixTokens * kQuads / kMatrixWidth;

// What an invocation brings of a step, and with the first one of a group.
struct Brought {
  RawPart part;
  uvec4 codes[kTurns], sums;
  float factor;
};
// Where it reads that: its parts of rows of w and of x.
struct From {
  uint64_t w, x, factors;
};
void bring(From from, uint g, uint step, inout Brought next) {
  uint id = gl_LocalInvocationID.x;
  next.part = read_part(from.w + uint64_t(g) * block_bytes(), step, id % kParts);
  UNROLLED for (uint n = 0; n < kTurns; ++n) {
    uint i = n / kPlanes * kMatrixWidth + id;
    uint64_t plane = n % kPlanes == 0 ? uint64_t(0) : uint64_t(p.k);
    next.codes[n] = Quads(from.x + plane + 256 * g + kStep * step + uint64_t(i / kQuads) * p.x_row_bytes).v[i % kQuads];
  }
  if (step > 0) return;
  if (has_minimum()) next.sums = Quads(from.x + p.k + 32 * g + uint64_t(id / 2 % kMatrixTokens) * p.x_row_bytes).v[id % 2];
  next.factor = factor_of(from.factors, g);
}
void put_down(Brought next, From from, uint g, uint step) {
  uint id = gl_LocalInvocationID.x, at = id / kParts * kPitch;
  put_part(next.part, from.w + uint64_t(g) * block_bytes(), step, id % kParts, at, kHigh + at);
  UNROLLED for (uint n = 0; n < kTurns; ++n) {
    uint i = n / kPlanes * kMatrixWidth + id;
    put((n % kPlanes == 0 ? kCodes : kCodesLow) + i / kQuads * kPitch + 4 * (i % kQuads), next.codes[n]);
  }
  if (step > 0) return;
  if (has_minimum() && id < 2 * kMatrixTokens) put(kCodes + id / 2 * kPitch + kMinimums + 4 * (id % 2), next.sums);
  if (id < kMatrixTokens) {
    WORD(kFactors + id) = floatBitsToUint(next.factor);
    if (!is_usual_factor(next.factor)) WORD(kUnusual) = 1u;
  }
}

void main() {
  uint id = gl_LocalInvocationID.x, subgroup = id / 32, lane = id % 32, n_tokens = Words(p.n_rows).v[0];
  uint first_m = gl_WorkGroupID.y * kMatrixRows, first_t = gl_WorkGroupID.x * kMatrixTokens;
  uint own_row = 16 * kRowTiles * (subgroup % kRowGroups), own_token = 32 * (subgroup / kRowGroups);  // of the workgroup's
  bool has_tokens = first_t + own_token < n_tokens;
  uint n_groups = p.k / 256, own_sums = subgroup * 2 * kSums, a_at = own_row * kPitch;
  uint b_at = kCodes + own_token * kPitch, b_low_at = kCodesLow + own_token * kPitch;
  uint64_t x = p.x + uint64_t(first_t) * p.x_row_bytes, own_w[kRowTiles];
  UNROLLED for (uint r = 0; r < kRowTiles; ++r)
    own_w[r] = p.w + uint64_t(min(first_m + own_row + 16 * r + lane % 16, p.m - 1)) * p.w_row_bytes;
  From from = From(p.w + uint64_t(min(first_m + id / kParts, p.m - 1)) * p.w_row_bytes, x,
                   factors_of(x + uint64_t(id % kMatrixTokens) * p.x_row_bytes));
  Brought next;
  bring(from, 0, 0, next);
  bool is_usual = true;
  float acc[8 * kTiles];
  UNROLLED for (uint n = 0; n < 8 * kTiles; ++n) acc[n] = 0.0;
  if (id == 0) WORD(kUnusual) = 0u;
  for (uint g = 0; g < n_groups; ++g) {
    uint scales[kRowTiles];
    UNROLLED for (uint r = 0; r < kRowTiles; ++r) scales[r] = read_scales(own_w[r] + uint64_t(g) * block_bytes());
    MatrixC high[kTiles], low[kTiles], second_high[kTiles], second_low[kTiles];
    UNROLLED for (uint i = 0; i < kTiles; ++i)
      high[i] = low[i] = second_high[i] = second_low[i] = zero_matrix();
    for (uint step = 0; step < kSteps; ++step) {
      barrier();
      put_down(next, from, g, step);
      barrier();
      if (step < kSteps - 1)
        bring(from, g, step + 1, next);
      else
        bring(from, min(g + 1, n_groups - 1), 0, next);
      if (has_tokens)
        UNROLLED for (uint k = 0; k < kStep / 4; k += 8) {
          MatrixA a_high[kRowTiles], a_low[kRowTiles];
          UNROLLED for (uint r = 0; r < kRowTiles; ++r) {
            a_high[r] = load_a(kHigh + a_at + 16 * r * kPitch + k, kPitch);
            a_low[r] = load_a(a_at + 16 * r * kPitch + k, kPitch);
          }
          UNROLLED for (uint t = 0; t < kTokenTiles; ++t) {
            MatrixB b = load_b(b_at + 16 * t * kPitch + k, kPitch);
            UNROLLED for (uint r = 0; r < kRowTiles; ++r) {
              uint i = t * kRowTiles + r;
              high[i] = multiply_add(a_high[r], b, high[i]);
              low[i] = multiply_add(a_low[r], b, low[i]);
            }
            if (X != kQ16A256) continue;
            b = load_b(b_low_at + 16 * t * kPitch + k, kPitch);
            UNROLLED for (uint r = 0; r < kRowTiles; ++r) {
              uint i = t * kRowTiles + r;
              second_high[i] = multiply_add(a_high[r], b, second_high[i]);
              second_low[i] = multiply_add(a_low[r], b, second_low[i]);
            }
          }
        }
    }
    UNROLLED for (uint i = 0; i < kTiles; ++i) {
      high[i] = plus(times_256(high[i]), low[i]);
      if (has_minimum()) {
        uint row_at = a_at + 16 * (i % kRowTiles) * kPitch + kMinimums;
        MatrixB sums = load_b(b_at + 16 * (i / kRowTiles) * kPitch + kMinimums, kPitch);
        second_high[i] = multiply_add(load_a(kHigh + row_at, kPitch), sums, second_high[i]);
        second_low[i] = multiply_add(load_a(row_at, kPitch), sums, second_low[i]);
      }
      if (has_second()) low[i] = plus(times_256(second_high[i]), second_low[i]);
    }
    barrier();
    is_usual = is_usual && WORD(kUnusual) == 0u;
    // Through memory to the invocations: rows of w side by side, of a row of x each.
    UNROLLED for (uint i = 0; i < kTiles; ++i) {
      store_c(own_sums, high[i], kSumPitch);
      if (has_second()) store_c(own_sums + kSums, low[i], kSumPitch);
      subgroup_barrier();
      vec2 d = scales_of(scales[i % kRowTiles]);
      uint factors = kFactors + own_token + 16 * (i / kRowTiles) + lane / 16;
      float v[8];
      UNROLLED for (uint n = 0; n < 8; ++n) {
        uint at = own_sums + (lane / 16 + 2 * n) * kSumPitch + lane % 16;
        v[n] = value_of(int(WORD(at)), has_second() ? int(WORD(at + kSums)) : 0, d);
        if (X == kQ16A256) is_usual = is_usual && is_usual_value(v[n]);
      }
      if (is_usual)
        UNROLLED for (uint n = 0; n < 8; ++n)
          acc[8 * i + n] = usual_fma(v[n], uintBitsToFloat(WORD(factors + 2 * n)), acc[8 * i + n]);
      else
        UNROLLED for (uint n = 0; n < 8; ++n)
          acc[8 * i + n] = ZRT_FMA(v[n], uintBitsToFloat(WORD(factors + 2 * n)), acc[8 * i + n]);
      subgroup_barrier();
    }
  }
  UNROLLED for (uint r = 0; r < kRowTiles; ++r) {
    uint m = first_m + own_row + 16 * r + lane % 16;
    if (m >= p.m) break;
    float bias = p.bias != 0 ? Floats(p.bias).v[m] : 0.0;
    UNROLLED for (uint n = 0; n < 8 * kTokenTiles; ++n) {
      uint t = first_t + own_token + lane / 16 + 2 * n;
      float y = acc[8 * (n / 8 * kRowTiles + r) + n % 8];
      if (t < n_tokens) Floats(float_row(p.y, t, p.m)).v[m] = p.bias != 0 ? y + bias : y;
    }
  }
}
