// The products of LINEAR for one row of x of groups of 256, of a matrix and a row that the kernel finds; linear.glsl
// says what is computed and in which order. A workgroup makes kRowRows outputs. An eight of its invocations has a group
// of x at a time, 32 values an invocation, and that group of each of the rows of w: so all groups of a row are read at
// once. Then an invocation has a row of w and goes through the groups in order.
// WIDTH: the workgroup's invocations, a multiple of 8, at most kRowWidth. Grid: (rows of x, rows of w / kRowRows).
// Included after PUSH.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "accumulate.glsl"
#include "groups.glsl"
layout(constant_id = 2) const uint WIDTH = kRowWidth;
layout(local_size_x_id = 2) in;
// What the kernel has.
uint64_t matrix();
uint64_t row_of_x();
void store(uint m, float value);

const uint kRows = kRowRows, kMostEights = kRowWidth / 8;
shared float values[kMostEights * kRows], factors[kMostEights];

// a of the invocations without the bit `mask` and b of those with it, plus the same of the neighbour over that bit.
int shared_sum(int a, int b, uint mask) {
  bool is_second = (gl_LocalInvocationID.x & mask) != 0u;
  return (is_second ? b : a) + subgroupShuffleXor(is_second ? a : b, mask);
}
// The sums over an eight of the four rows' numbers; an invocation gets that of row (its number) % 4.
int sum_over_eight(int v[kRows]) {
  int sum = shared_sum(shared_sum(v[0], v[2], 2), shared_sum(v[1], v[3], 2), 1);
  return sum + subgroupShuffleXor(sum, 4);
}

// Part i of eight of group g of x and of the rows w: both sums (groups.glsl).
void sums_of_part(uint64_t w[kRows], uint64_t x, uint g, uint i, out int first[kRows], out int second[kRows]) {
  uvec2 at = halves_at(i);
  RawPart raw[kRows];
  [[unroll]] for (uint r = 0; r < kRows; ++r) raw[r] = raw_part(w[r] + g * block_bytes(), i);
  Quads codes = Quads(x + 256 * g);
  uvec4 x_first = codes.v[at.x / 16], x_second = codes.v[at.y / 16];
  ivec2 sums = has_minimum() ? sums_of(x, g, at.x, at.y) : ivec2(0);
  [[unroll]] for (uint r = 0; r < kRows; ++r) {
    Part part = unpacked(raw[r], w[r] + g * block_bytes(), i);
    first[r] = part.sub.x * dot16(part.first, x_first) + part.sub.y * dot16(part.second, x_second);
    second[r] = part.sub.z * sums.x + part.sub.w * sums.y;
  }
}
void sums_of_fixed(uint64_t w[kRows], uint64_t x, uint g, uint i, out int first[kRows], out int second[kRows]) {
  [[unroll]] for (uint r = 0; r < kRows; ++r) first[r] = second[r] = 0;
  [[unroll]] for (uint h = 0; h < 2; ++h) {
    uint at = 256 * g + 32 * i + 16 * h;
    uvec4 x_high = Quads(x + at).v[0], x_low = Quads(x + p.k + at).v[0];
    [[unroll]] for (uint r = 0; r < kRows; ++r) {
      uint64_t block = w[r] + g * block_bytes() + 32 * i + 16 * h;
      uvec4 high = quad_at(block), low = quad_at(block + kLowDigits);
      first[r] += 256 * dot16(high, x_high) + dot16(low, x_high);
      second[r] += 256 * dot16(high, x_low) + dot16(low, x_low);
    }
  }
}

void main() {
  uint id = gl_LocalInvocationID.x, i = id % 8, eight = id / 8, n_eights = WIDTH / 8, own = id % kRows;
  uint first_m = gl_WorkGroupID.y * kRows, n_groups = p.k / 256;
  // What is past the end is computed from the last row or group, so that no invocation leaves a shuffle, and not used.
  uint64_t x = row_of_x(), w[kRows], own_w = matrix() + uint64_t(min(first_m + own, p.m - 1)) * p.w_row_bytes;
  [[unroll]] for (uint r = 0; r < kRows; ++r) w[r] = matrix() + uint64_t(min(first_m + r, p.m - 1)) * p.w_row_bytes;
  bool is_usual = true;
  float acc = 0.0;
  for (uint first = 0; first < n_groups; first += n_eights) {
    uint g = min(first + eight, n_groups - 1);
    uint scales = read_scales(own_w + g * block_bytes());
    float factor = factor_of(factors_of(x), g);
    int firsts[kRows], seconds[kRows];
    if (X == kQ16A256)
      sums_of_fixed(w, x, g, i, firsts, seconds);
    else
      sums_of_part(w, x, g, i, firsts, seconds);
    int sum = sum_over_eight(firsts), second_sum = has_second() ? sum_over_eight(seconds) : 0;
    if (i < kRows) values[eight * kRows + i] = value_of(sum, second_sum, scales_of(scales));
    if (i == 0) factors[eight] = factor;
    barrier();
    if (id < kRows) {
      uint n = min(n_eights, n_groups - first);
      float v[kMostEights], f[kMostEights];
      [[unroll]] for (uint e = 0; e < kMostEights; ++e) {
        v[e] = values[e * kRows + id];
        f[e] = factors[e];
        is_usual = is_usual && (e >= n || (is_usual_factor(f[e]) && (X == kQ8A256 || is_usual_value(v[e]))));
      }
      // The rare way is a loop: written out, its instructions would lie between those of the usual one.
      if (is_usual)
        [[unroll]] for (uint e = 0; e < kMostEights; ++e) acc = e < n ? usual_fma(v[e], f[e], acc) : acc;
      else
        [[dont_unroll]] for (uint e = 0; e < n; ++e) acc = ZRT_FMA(values[e * kRows + id], factors[e], acc);
    }
    barrier();
  }
  if (id < kRows && first_m + id < p.m) store(first_m + id, acc);
}
