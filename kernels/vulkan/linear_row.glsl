// Computes the products of LINEAR and MOE_LINEAR with one row of x or a few, in groups of 256 (groups.glsl has the
// types). linear_rows.glsl or moe_linear_rows.glsl says which matrix and rows; linear.glsl has the formula and the
// order of sums.
// Grid: (rows of x / TOKENS, rows of w / kRowRows). A workgroup computes the outputs of kRowRows rows of w and up to
// TOKENS rows of x. Eight neighbouring invocations, called an eight, compute one group of 256 at a time for all these
// rows: each of them 32 values. So all groups of a row are loaded at once, and weights are unpacked once for all rows
// of x. Then each invocation adds the groups' values of one row of x and one row of w in order.
// WIDTH: the invocations of a workgroup, a multiple of 8 up to kRowWidth. TOKENS: 1, or kRowTokens if WIDTH is
// kRowWidth. Included after PUSH.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "accumulate.glsl"
#include "groups.glsl"
layout(constant_id = 2) const uint WIDTH = kRowWidth;
layout(constant_id = 3) const uint TOKENS = 1;
layout(local_size_x_id = 2) in;
// The including kernel defines these. matrix() returns the address of the matrix, and store() takes the output of the
// workgroup's t-th row of x and of row m of the matrix.
uint64_t matrix();
uint64_t row_of_x(uint t);  // the address of the workgroup's t-th row of x
uint n_rows();              // how many rows of x the workgroup has, at most TOKENS
void store(uint t, uint m, float value);

const uint kRows = kRowRows, kMostEights = kRowWidth / 8;
// values: v by row of x, group and row of w. factors: by row of x and group.
shared float values[TOKENS * kMostEights * kRows], factors[TOKENS * kMostEights];

// Returns the invocation's number in its workgroup. The invocations of a subgroup have neighbouring numbers.
uint own_id() { return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID; }

// Returns a (in invocations without the bit `mask` in their number) or b (in those with it), plus the same number of
// the neighbour whose number differs by that bit.
int shared_sum(int a, int b, uint mask) {
  bool is_second = (gl_SubgroupInvocationID & mask) != 0u;
  return (is_second ? b : a) + subgroupShuffleXor(is_second ? a : b, mask);
}
// Sums each of the four v[r] over the eight invocations of an eight. Invocation i gets the sum of v[i mod 4].
int sum_over_eight(int v[kRows]) {
  int sum = shared_sum(shared_sum(v[0], v[2], 2), shared_sum(v[1], v[3], 2), 1);
  return sum + subgroupShuffleXor(sum, 4);
}

// An eighth of a group of the rows of w: 32 codes per row; of fixed16 the high digits in `part` and the low ones in
// `low`.
struct Weights {
  Part part[kRows], low[kRows];
};
// The same eighth of a row of x, the sums of its two runs of 16 codes, and the group's factor.
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
// Returns both sums (groups.glsl) of the invocation's 32 values of row r of w.
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
  // All invocations must take part in the shuffles. So rows past the last row of w repeat it, and eights past the last
  // group compute the last group. Nothing of that is used.
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
      // The slow way, for sums that may be denormals, is rare, so it is a loop: unrolled, its instructions would lie
      // between those of the fast way.
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
