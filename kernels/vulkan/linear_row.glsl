// The products of LINEAR for rows of x of groups of 256, one or a few, of a matrix and rows that the kernel finds;
// linear.glsl says what is computed and in which order. A workgroup makes kRowRows outputs of up to TOKENS rows of x. An
// eight of its invocations has a group of 256 at a time, 32 values an invocation, of each of the rows of w: so all groups
// of a row are read at once, and weights are unpacked once for all rows of x. Then an invocation has a row of x and a row
// of w and goes through the groups in order.
// WIDTH: the workgroup's invocations, a multiple of 8, at most kRowWidth. TOKENS: 1, or kRowTokens with WIDTH kRowWidth.
// Grid: (rows of x / TOKENS, rows of w / kRowRows). Included after PUSH.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "accumulate.glsl"
#include "groups.glsl"
layout(constant_id = 2) const uint WIDTH = kRowWidth;
layout(constant_id = 3) const uint TOKENS = 1;
layout(local_size_x_id = 2) in;
// What the kernel has.
uint64_t matrix();
uint64_t row_of_x(uint t);  // of the t-th of the workgroup's rows of x
uint n_rows();              // of these that there are, at most TOKENS
void store(uint t, uint m, float value);

const uint kRows = kRowRows, kMostEights = kRowWidth / 8;
// By row of x, group and row of w; by row of x and group.
shared float values[TOKENS * kMostEights * kRows], factors[TOKENS * kMostEights];

// The invocation's number, in which those of a subgroup are neighbours.
uint own_id() { return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID; }

// a of the invocations without the bit `mask` and b of those with it, plus the same of the neighbour over that bit.
int shared_sum(int a, int b, uint mask) {
  bool is_second = (gl_SubgroupInvocationID & mask) != 0u;
  return (is_second ? b : a) + subgroupShuffleXor(is_second ? a : b, mask);
}
// The sums over an eight of the four rows' numbers; an invocation gets that of row (its number) % 4.
int sum_over_eight(int v[kRows]) {
  int sum = shared_sum(shared_sum(v[0], v[2], 2), shared_sum(v[1], v[3], 2), 1);
  return sum + subgroupShuffleXor(sum, 4);
}

// What an invocation has of a group of the rows of w: 32 codes a row, of fixed16 the high digits and the low ones.
struct Weights {
  Part part[kRows], low[kRows];
};
// The same of a row of x, and its factor.
struct Activations {
  uvec4 first, second, low_first, low_second;
  ivec2 sums;
  float factor;
};
Weights weights_of(uint64_t w[kRows], uint g, uint i) {
  Weights weights;
  if (X == kQ16A256) {
    [[unroll]] for (uint r = 0; r < kRows; ++r) {
      uint64_t block = w[r] + g * block_bytes() + 32 * i;
      weights.part[r] = Part(quad_at(block), quad_at(block + 16), ivec4(0));
      weights.low[r] = Part(quad_at(block + kLowDigits), quad_at(block + kLowDigits + 16), ivec4(0));
    }
    return weights;
  }
  RawPart raw[kRows];
  [[unroll]] for (uint r = 0; r < kRows; ++r) raw[r] = raw_part(w[r] + g * block_bytes(), i);
  [[unroll]] for (uint r = 0; r < kRows; ++r) weights.part[r] = unpacked(raw[r], w[r] + g * block_bytes(), i);
  return weights;
}
Activations activations_of(uint64_t x, uint g, uint i) {
  Activations a;
  uvec2 at = X == kQ16A256 ? uvec2(0, 16) + 32 * i : halves_at(i);
  a.first = Quads(x + 256 * g + at.x).v[0];
  a.second = Quads(x + 256 * g + at.y).v[0];
  a.factor = factor_of(factors_of(x), g);
  if (X == kQ16A256) {
    a.low_first = Quads(x + p.k + 256 * g + at.x).v[0];
    a.low_second = Quads(x + p.k + 256 * g + at.y).v[0];
  } else if (has_minimum()) {
    a.sums = sums_of(x, g, at.x, at.y);
  }
  return a;
}
// Both sums (groups.glsl) of the invocation's 32 values of row r.
ivec2 sums_of_part(Weights weights, Activations a, uint r) {
  Part part = weights.part[r], low = weights.low[r];
  int first = dot16(part.first, a.first), second = dot16(part.second, a.second);
  if (X == kQ16A256)
    return ivec2(256 * (first + second) + dot16(low.first, a.first) + dot16(low.second, a.second),
                 256 * (dot16(part.first, a.low_first) + dot16(part.second, a.low_second)) +
                     dot16(low.first, a.low_first) + dot16(low.second, a.low_second));
  return ivec2(part.sub.x * first + part.sub.y * second, part.sub.z * a.sums.x + part.sub.w * a.sums.y);
}

void main() {
  uint id = own_id(), i = id % 8, eight = id / 8, n_eights = WIDTH / 8, own = id % kRows;
  uint first_m = gl_WorkGroupID.y * kRows, n_groups = p.k / 256;
  uint n_tokens = TOKENS == 1 ? 1 : n_rows(), m = first_m + id % kRows, t = id / kRows;
  // What is past the end is computed from the last row or group, so that no invocation leaves a shuffle, and not used.
  uint64_t w[kRows], own_w = matrix() + uint64_t(min(first_m + own, p.m - 1)) * p.w_row_bytes;
  [[unroll]] for (uint r = 0; r < kRows; ++r) w[r] = matrix() + uint64_t(min(first_m + r, p.m - 1)) * p.w_row_bytes;
  bool is_usual = true;
  float acc = 0.0;
  for (uint first = 0; first < n_groups; first += n_eights) {
    uint g = min(first + eight, n_groups - 1);
    uint scales = read_scales(own_w + g * block_bytes());
    Activations next = activations_of(row_of_x(0), g, i);
    Weights weights = weights_of(w, g, i);
    vec2 d = scales_of(scales);
    for (uint token = 0; token < n_tokens; ++token) {
      Activations a = next;
      if (TOKENS > 1) next = activations_of(row_of_x(min(token + 1, n_tokens - 1)), g, i);
      int firsts[kRows], seconds[kRows];
      [[unroll]] for (uint r = 0; r < kRows; ++r) {
        ivec2 sums = sums_of_part(weights, a, r);
        firsts[r] = sums.x;
        seconds[r] = sums.y;
      }
      int sum = sum_over_eight(firsts), second_sum = has_second() ? sum_over_eight(seconds) : 0;
      uint at = token * kMostEights + eight;
      if (i < kRows) values[at * kRows + i] = value_of(sum, second_sum, d);
      if (i == 0) factors[at] = a.factor;
    }
    barrier();
    if (t < n_tokens) {
      uint n = min(n_eights, n_groups - first), at = t * kMostEights;
      float v[kMostEights], f[kMostEights];
      [[unroll]] for (uint e = 0; e < kMostEights; ++e) {
        v[e] = values[(at + e) * kRows + id % kRows];
        f[e] = factors[at + e];
        is_usual = is_usual && (e >= n || (is_usual_factor(f[e]) && (X == kQ8A256 || is_usual_value(v[e]))));
      }
      // The rare way is a loop: written out, its instructions would lie between those of the usual one.
      if (is_usual)
        [[unroll]] for (uint e = 0; e < kMostEights; ++e) acc = e < n ? usual_fma(v[e], f[e], acc) : acc;
      else
        [[dont_unroll]] for (uint e = 0; e < n; ++e)
          acc = ZRT_FMA(values[(at + e) * kRows + id % kRows], factors[at + e], acc);
    }
    barrier();
  }
  if (t < n_tokens && m < p.m) store(t, m, acc);
}
