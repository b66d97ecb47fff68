// Computes the products of LINEAR and MOE_LINEAR with one row of x: y[m] = dot(w[m], x) for the p.m rows of a matrix,
// of p.k values each. linear_rows.glsl or moe_linear_rows.glsl says which matrix and row. X is the type of x: q8a32,
// for the integer dot of formats with blocks of 32 (rule 3 of docs/arithmetic.md), or f32, for the float dot with the
// weights converted to float (rule 4). linear_row.glsl computes the other types, in groups of 256.
// Order of sums: groups of 256 values of k ascending; acc = acc + v for each group's value v. (With x in q8a256 and
// q16a256, acc = fma(v, d_x, acc).)
// Grid: (rows of x, rows of w / (subgroups * kLinearRows)). Each subgroup computes kLinearRows outputs. Eight
// neighbouring invocations, called an eight, compute one group at a time: each of them one block of 32 weights, or two
// of the 16 lanes of the float dot. Included after PUSH.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
layout(constant_id = 1) const uint X = kF32;
const uint TOKENS = 1;  // rows of x per workgroup
// The including kernel defines these: the address of the matrix, the address of the workgroup's t-th row of x, and what
// happens to the output of row m of the matrix.
uint64_t matrix();
uint64_t row_of_x(uint t);
void store(uint t, uint m, float value);
const uint kRows = kLinearRows;

// Returns v of one group of n floats to an eight. Invocation i of the eight computes the lanes i and i + 8 of the 16,
// because the fold adds these two first.
float float_group(uint64_t w, uint64_t x, uint first, uint n, uint i) {
  float low = 0.0, high = 0.0;
  for (uint k = i; k < n; k += 16) {
    low = ZRT_FMA(element(w, first + k), Floats(x).v[first + k], low);
    if (k + 8 < n) high = ZRT_FMA(element(w, first + k + 8), Floats(x).v[first + k + 8], high);
  }
  float v = low + high;
  for (uint mask = 4; mask > 0; mask /= 2) v = v + subgroupShuffleXor(v, mask);
  return v;
}

// Returns v of one group of n_blocks blocks to an eight. Invocation i of the eight computes block i; then all of them
// add the blocks' values in order.
float group_of_blocks(uint64_t w, uint64_t x, uint first_block, uint n_blocks, uint i) {
  float scaled = 0.0, minimum = 0.0, dx = 0.0;
  if (i < n_blocks) {
    uint64_t block = w + uint64_t(first_block + i) * block_bytes();
    Quads codes = Quads(x + 32 * (first_block + i));
    Words head = Words(x + p.k + (first_block + i) * kQ8A32Head);
    int isum = 0;
    for (uint h = 0; h < 2; ++h) {
      uvec4 c;
      for (uint k = 0; k < 4; ++k) c[k] = codes4(block, 16 * h + 4 * k);
      isum += dot16(c, codes.v[h]);
    }
    vec2 d = block_scales(block);
    dx = uintBitsToFloat(head.v[0]);
    scaled = float(isum) * d.x;
    minimum = float(int(head.v[1])) * d.y;
  }
  float v = 0.0;
  uint begin = gl_SubgroupInvocationID & ~7u;
  for (uint b = 0; b < 8; ++b) {
    float b_scaled = subgroupShuffle(scaled, begin + b), b_dx = subgroupShuffle(dx, begin + b);
    float b_minimum = has_minimum() ? subgroupShuffle(minimum, begin + b) : 0.0;
    if (b >= n_blocks) continue;
    v = ZRT_FMA(b_scaled, b_dx, v);
    if (has_minimum()) v = ZRT_FMA(b_minimum, b_dx, v);
  }
  return v;
}

void main() {
  uint i = gl_SubgroupInvocationID % 8, eight = gl_SubgroupInvocationID / 8, n_eights = gl_SubgroupSize / 8;
  uint m = (gl_WorkGroupID.y * gl_NumSubgroups + gl_SubgroupID) * kRows, n_groups = (p.k + 255) / 256;
  // All invocations must take part in the shuffles. So invocations past the last row of w compute the last row, and
  // eights past the last group compute the last group. Nothing of that is used.
  uint64_t w[kRows];
  for (uint r = 0; r < kRows; ++r) w[r] = matrix() + uint64_t(min(m + r, p.m - 1)) * p.w_row_bytes;
  float acc[kRows];
  for (uint r = 0; r < kRows; ++r) acc[r] = 0.0;
  for (uint first = 0; first < n_groups; first += n_eights) {
    uint g = min(first + eight, n_groups - 1);
    float v[kRows];
    for (uint r = 0; r < kRows; ++r)
      v[r] = X == kQ8A32 ? group_of_blocks(w[r], row_of_x(0), 8 * g, min(8, p.k / 32 - 8 * g), i)
                         : float_group(w[r], row_of_x(0), 256 * g, min(256, p.k - 256 * g), i);
    for (uint e = 0; e < n_eights && first + e < n_groups; ++e)
      for (uint r = 0; r < kRows; ++r) acc[r] = acc[r] + subgroupShuffle(v[r], 8 * e + i);
  }
  if (eight != 0 || i != 0) return;
  for (uint r = 0; r < kRows; ++r)
    if (m + r < p.m) store(0, m + r, acc[r]);
}
