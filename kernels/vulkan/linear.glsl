// The products of LINEAR for few rows of x, of a matrix and rows that the kernel finds: p.m rows of p.k values.
// X is the type of x: quantized (types.glsl), it takes the format's integer dot (rules 3 and 4); float, it takes the float
// dot of the widened weights (rule 4).
// Order: groups of 256 ascending. q8a256 and q16a256: acc = fma(v, d_x, acc); others: acc = acc + v.
// Grid: (rows of x / kTokens, rows of w / (subgroups * kLinearRows)). A subgroup makes kLinearRows outputs of kTokens rows
// of x, with a group an eight of its invocations at a time. In an eight an invocation has 32 weights, or two of the 16
// lanes. kTokens is 1, or 8 for x of groups of 256: an invocation of each eight then ends up with one row of x.
// Included after PUSH.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "accumulate.glsl"
#include "groups.glsl"
// What the kernel has.
uint64_t matrix();
uint64_t row_of_x(uint t);  // of the t-th of the workgroup's rows of x
uint n_rows();              // of these that there are
void store(uint t, uint m, float value);

const bool kHasGroups = X == kQ8A256 || X == kQ16A256;
const uint kTokens = kHasGroups ? kFewTokens : 1, kRows = kLinearRows, kSums = kRows * kFewTokens;

// Sums over an eight, by row of x and row of w; an invocation gets those of its row of x as the first ones.
void sum_over_eight(inout int v[kSums], uint i) {
  uint n = kSums / 2;
  for (uint mask = 4; mask > 0; mask /= 2) {
    bool is_upper = (i & mask) != 0;
    for (uint j = 0; j < n; ++j) {
      int kept = is_upper ? v[j + n] : v[j], given = is_upper ? v[j] : v[j + n];
      v[j] = kept + subgroupShuffleXor(given, mask);
    }
    n /= 2;
  }
}

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

// Group g of the rows w, for the invocation's row of x.
void k_group(uint64_t w[kRows], uint g, uint i, out float v[kRows]) {
  Part part[kRows];
  for (uint r = 0; r < kRows; ++r) part[r] = unpacked(raw_part(w[r] + g * block_bytes(), i), w[r] + g * block_bytes(), i);
  uvec2 at = halves_at(i);
  int isum[kSums], msum[kSums];
  for (uint t = 0; t < kTokens; ++t) {
    uint64_t x = row_of_x(t);
    Quads codes = Quads(x + 256 * g);
    uvec4 first = codes.v[at.x / 16], second = codes.v[at.y / 16];
    ivec2 sums = has_minimum() ? sums_of(x, g, at.x, at.y) : ivec2(0);
    for (uint r = 0; r < kRows; ++r) {
      isum[t * kRows + r] = part[r].sub.x * dot16(part[r].first, first) + part[r].sub.y * dot16(part[r].second, second);
      msum[t * kRows + r] = part[r].sub.z * sums.x + part[r].sub.w * sums.y;
    }
  }
  sum_over_eight(isum, i);
  if (has_minimum()) sum_over_eight(msum, i);
  for (uint r = 0; r < kRows; ++r)
    v[r] = value_of(isum[r], has_minimum() ? msum[r] : 0, scales_of(read_scales(w[r] + g * block_bytes())));
}

// Of fixed16: the codes times the high digits of x, and times the low ones.
void fixed_group(uint64_t w[kRows], uint g, uint i, out float v[kRows]) {
  uvec4 w_high[kRows * 2], w_low[kRows * 2];
  for (uint j = 0; j < kRows * 2; ++j) {
    uint64_t block = w[j / 2] + uint64_t(g) * block_bytes() + 32 * i + 16 * (j % 2);
    w_high[j] = quad_at(block);
    w_low[j] = quad_at(block + kLowDigits);
  }
  int a[kSums], b[kSums];
  for (uint t = 0; t < kTokens; ++t) {
    Quads x = Quads(row_of_x(t) + 256 * g), x_low = Quads(row_of_x(t) + p.k + 256 * g);
    for (uint r = 0; r < kRows; ++r) a[t * kRows + r] = b[t * kRows + r] = 0;
    for (uint h = 0; h < 2; ++h) {
      uvec4 high = x.v[2 * i + h], low = x_low.v[2 * i + h];
      for (uint r = 0; r < kRows; ++r) {
        a[t * kRows + r] += 256 * dot16(w_high[2 * r + h], high) + dot16(w_low[2 * r + h], high);
        b[t * kRows + r] += 256 * dot16(w_high[2 * r + h], low) + dot16(w_low[2 * r + h], low);
      }
    }
  }
  sum_over_eight(a, i);
  sum_over_eight(b, i);
  for (uint r = 0; r < kRows; ++r) v[r] = value_of(a[r], b[r], scales_of(read_scales(w[r] + g * block_bytes())));
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
  uint t = kHasGroups ? i : 0;
  // What is past the end is computed from the last row or group, so that no invocation leaves a shuffle, and not used.
  uint64_t w[kRows];
  for (uint r = 0; r < kRows; ++r) w[r] = matrix() + uint64_t(min(m + r, p.m - 1)) * p.w_row_bytes;
  bool is_usual = true;
  float acc[kRows];
  for (uint r = 0; r < kRows; ++r) acc[r] = 0.0;
  for (uint first = 0; first < n_groups; first += n_eights) {
    uint g = min(first + eight, n_groups - 1);
    float v[kRows], factor = 1.0;
    switch (X) {
      case kQ8A32:
        for (uint r = 0; r < kRows; ++r) v[r] = group_of_blocks(w[r], row_of_x(0), 8 * g, min(8, p.k / 32 - 8 * g), i);
        break;
      case kQ8A256:
        k_group(w, g, i, v);
        factor = factor_of(factors_of(row_of_x(t)), g);
        break;
      case kQ16A256:
        fixed_group(w, g, i, v);
        factor = factor_of(factors_of(row_of_x(t)), g);
        break;
      default:
        for (uint r = 0; r < kRows; ++r) v[r] = float_group(w[r], row_of_x(0), 256 * g, min(256, p.k - 256 * g), i);
    }
    for (uint e = 0; e < n_eights && first + e < n_groups; ++e) {
      float f = kHasGroups ? subgroupShuffle(factor, 8 * e + i) : 1.0;
      for (uint r = 0; r < kRows; ++r) {
        float of_group = subgroupShuffle(v[r], 8 * e + i);
        is_usual = is_usual && is_usual_factor(f) && (X == kQ8A256 || is_usual_value(of_group));
        acc[r] = !kHasGroups ? acc[r] + of_group
                 : is_usual   ? usual_fma(of_group, f, acc[r])
                              : ZRT_FMA(of_group, f, acc[r]);
      }
    }
  }
  if (eight != 0 || t >= n_rows() || (!kHasGroups && i != 0)) return;
  for (uint r = 0; r < kRows; ++r)
    if (m + r < p.m) store(t, m + r, acc[r]);
}
