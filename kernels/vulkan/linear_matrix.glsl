// LINEAR for many rows of x, of groups of 256, by matrices of int8; linear.glsl says what it computes and in which order.
// A workgroup makes kMatrixRows rows of w times kMatrixTokens rows of x, a subgroup 32 of each. In a group the codes of w
// times their integer scales are two digits, high and low, so that isum = 256 * high x + low x is two products of 256 long;
// msum is one of the minimums and the digits of the sums of x. Of fixed16, which is digits, A and B are made with both
// planes of x. Then each invocation has a row of w and 32 rows of x, and goes on with floats.
// Rows past the end of w repeat the last one; those of x are what lies there, within its memory. Neither is stored.
// Grid: (rows of x / kMatrixTokens, rows of w / kMatrixRows). Included after PUSH.
layout(constant_id = 1) const uint X = kQ8A256;
const uint kPitch = 68, kDigits = kMatrixRows * kPitch;                     // words of a row of digits, of all rows
const uint kMinimums = 2 * kDigits, kMinimumPitch = 12;                     // behind both digits
const uint kMinimumsHigh = kMinimums + kMatrixRows * kMinimumPitch;
shared uint tile[kMinimumsHigh + kMatrixRows * kMinimumPitch];
shared float factors[kMatrixTokens];
#include "matrices.glsl"

// Words of digits of four codes, each times scale: low ones (x) and high ones (y).
uvec2 digits_of(uint codes, int scale) {
  uvec2 digits = uvec2(0u);
  for (int at = 0; at < 32; at += 8) {
    int v = bitfieldExtract(int(codes), at, 8) * scale;
    digits |= uvec2(uint(v & 255) << at, uint((v + 128 >> 8) & 255) << at);
  }
  return digits;
}

// A quarter of a row of w, sub-blocks 4 quarter..4 quarter + 3.
void unpack(uint64_t block, uint r, uint quarter) {
  uint minimums = 0u;
  for (uint s = 4 * quarter; s < 4 * quarter + 4; ++s) {
    ivec2 sub = X == kQ8A256 ? sub_block(block, s) : ivec2(0);
    for (uint k = 0; k < 16; k += 4) {
      uvec2 digits = X == kQ8A256 ? digits_of(codes4(block, 16 * s + k), sub.x)
                                  : uvec2(word_at(block + kLowDigits + 16 * s + k), word_at(block + 16 * s + k));
      uint at = r * kPitch + 4 * s + k / 4;
      tile[at] = digits.x;
      tile[kDigits + at] = digits.y;
    }
    minimums |= uint(sub.y) << (8 * (s % 4));
  }
  if (!has_minimum()) return;
  uint at = r * kMinimumPitch + quarter;
  tile[kMinimums + at] = tile[kMinimumsHigh + at + 4] = minimums;
  tile[kMinimums + at + 4] = tile[kMinimumsHigh + at] = 0u;
}

void main() {
  uint id = gl_LocalInvocationID.x, part = id / 32, lane = id % 32;
  uint first_m = gl_WorkGroupID.y * kMatrixRows, first_t = gl_WorkGroupID.x * kMatrixTokens;
  uint own_row = 32 * (part % 2), own_token = 32 * (part / 2);  // of the workgroup's
  uint m = first_m + own_row + lane, stride = p.x_row_bytes / 4, n_groups = p.k / 256;
  uint64_t unpacked = p.w + uint64_t(min(first_m + id / 4, p.m - 1)) * p.w_row_bytes;
  uint64_t own_w = p.w + uint64_t(min(m, p.m - 1)) * p.w_row_bytes;
  uint64_t x = p.x + uint64_t(first_t + own_token) * p.x_row_bytes, next_x = x + uint64_t(16 * p.x_row_bytes);
  uint64_t heads = p.x + uint64_t(first_t + id % kMatrixTokens) * p.x_row_bytes +
                   (X == kQ8A256 ? q8a256_heads(p.k) : 2 * p.k);
  uint a0 = own_row * kPitch, a1 = a0 + 16 * kPitch, own_tile = part * 1024;
  uint m0 = own_row * kMinimumPitch, m1 = m0 + 16 * kMinimumPitch;
  float acc[32];
  for (uint n = 0; n < 32; ++n) acc[n] = 0.0;
  for (uint g = 0; g < n_groups; ++g) {
    barrier();
    unpack(unpacked + uint64_t(g) * block_bytes(), id / 4, id % 4);
    if (id < kMatrixTokens) factors[id] = Floats(heads + g * (X == kQ8A256 ? kQ8A256Head : kQ16A256Head)).v[0];
    barrier();
    MatrixC c00 = zero_matrix(), c01 = zero_matrix(), c10 = zero_matrix(), c11 = zero_matrix();
    MatrixC d00 = zero_matrix(), d01 = zero_matrix(), d10 = zero_matrix(), d11 = zero_matrix();
    for (uint digit = kDigits;; digit = 0) {
      for (uint k = 0; k < 8; ++k) {
        uint at = digit + 8 * k, from = 256 * g + 32 * k;
        MatrixA w0 = load_a(a0 + at, kPitch), w1 = load_a(a1 + at, kPitch);
        MatrixB x0 = load_b(x + from, stride), x1 = load_b(next_x + from, stride);
        c00 = multiply_add(w0, x0, c00);
        c01 = multiply_add(w0, x1, c01);
        c10 = multiply_add(w1, x0, c10);
        c11 = multiply_add(w1, x1, c11);
        if (X == kQ16A256) {
          MatrixB low0 = load_b(x + p.k + from, stride), low1 = load_b(next_x + p.k + from, stride);
          d00 = multiply_add(w0, low0, d00);
          d01 = multiply_add(w0, low1, d01);
          d10 = multiply_add(w1, low0, d10);
          d11 = multiply_add(w1, low1, d11);
        }
      }
      if (digit == 0) break;
      c00 = times_256(c00);
      c01 = times_256(c01);
      c10 = times_256(c10);
      c11 = times_256(c11);
      if (X == kQ16A256) {
        d00 = times_256(d00);
        d01 = times_256(d01);
        d10 = times_256(d10);
        d11 = times_256(d11);
      }
    }
    if (has_minimum()) {
      uint from = p.k + 32 * g;
      MatrixB x0 = load_b(x + from, stride), x1 = load_b(next_x + from, stride);
      MatrixA w0 = load_a(kMinimumsHigh + m0, kMinimumPitch), w1 = load_a(kMinimumsHigh + m1, kMinimumPitch);
      d00 = times_256(multiply_add(w0, x0, d00));
      d01 = times_256(multiply_add(w0, x1, d01));
      d10 = times_256(multiply_add(w1, x0, d10));
      d11 = times_256(multiply_add(w1, x1, d11));
      w0 = load_a(kMinimums + m0, kMinimumPitch);
      w1 = load_a(kMinimums + m1, kMinimumPitch);
      d00 = multiply_add(w0, x0, d00);
      d01 = multiply_add(w0, x1, d01);
      d10 = multiply_add(w1, x0, d10);
      d11 = multiply_add(w1, x1, d11);
    }
    barrier();
    // Through memory to the invocations: rows of w side by side, of a row of x each.
    store_c(own_tile, c00, 32);
    store_c(own_tile + 16, c10, 32);
    store_c(own_tile + 512, c01, 32);
    store_c(own_tile + 528, c11, 32);
    subgroup_barrier();
    int first[32];
    for (uint n = 0; n < 32; ++n) first[n] = int(tile[own_tile + 32 * n + lane]);
    if (has_minimum() || X == kQ16A256) {
      subgroup_barrier();
      store_c(own_tile, d00, 32);
      store_c(own_tile + 16, d10, 32);
      store_c(own_tile + 512, d01, 32);
      store_c(own_tile + 528, d11, 32);
      subgroup_barrier();
    }
    uint64_t block = own_w + uint64_t(g) * block_bytes();
    vec2 d = X == kQ8A256 ? block_scales(block) : vec2(bf16_to_f32(half_at(block + kScale)), 0.0);
    for (uint n = 0; n < 32; ++n) {
      int second = has_minimum() || X == kQ16A256 ? int(tile[own_tile + 32 * n + lane]) : 0;
      float v = X == kQ16A256   ? ZRT_FMA(float(first[n]), 256.0, float(second)) * d.x
                : has_minimum() ? ZRT_FMA(float(first[n]), d.x, float(second) * -d.y)
                                : float(first[n]) * d.x;
      acc[n] = ZRT_FMA(v, factors[own_token + n], acc[n]);
    }
  }
  uint n_tokens = Words(p.n_rows).v[0];
  if (m >= p.m) return;
  float bias = p.bias != 0 ? Floats(p.bias).v[m] : 0.0;
  for (uint n = 0; n < 32; ++n) {
    uint t = first_t + own_token + n;
    if (t < n_tokens) Floats(float_row(p.y, t, p.m)).v[m] = p.bias != 0 ? acc[n] + bias : acc[n];
  }
}
