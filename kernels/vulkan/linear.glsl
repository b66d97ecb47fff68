// The products of LINEAR for a row of x, of a matrix and a row that the kernel finds: p.m rows of p.k values. X is the
// type of x: q8a32, with the format's integer dot (rules 3 and 4); or floats, with the float dot of the widened weights
// (rule 4). Rows of groups of 256 are linear_row.glsl's.
// Order: groups of 256 ascending. acc = acc + v; of q8a256 and q16a256 acc = fma(v, d_x, acc).
// Grid: (rows of x, rows of w / (subgroups * kLinearRows)). A subgroup makes kLinearRows outputs, with a group an eight of
// its invocations at a time. In an eight an invocation has a block of 32 weights, or two of the 16 lanes. Included after
// PUSH.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
layout(constant_id = 1) const uint X = kF32;
const uint TOKENS = 1;  // rows of x of a workgroup
// What the kernel has.
uint64_t matrix();
uint64_t row_of_x(uint t);
void store(uint t, uint m, float value);
const uint kRows = kLinearRows;

// Lanes i and i + 8 of the 16; the fold adds these two first.
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

// Block i of the group; then all eight go through the group's blocks in order.
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
  // What is past the end is computed from the last row or group, so that no invocation leaves a shuffle, and not used.
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
