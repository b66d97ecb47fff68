// The products of LINEAR for few rows of x, of a matrix and a row that the kernel finds: rows of p.m, of p.k values.
// X is the type of x: quantized (kernels/common/act_q8.h), it takes the format's integer dot (rules 3 and 4); float, it
// takes the float dot of the widened weights (rule 4).
// Order: groups of 256 ascending. q8a256 and q16a256: acc = fma(v, d_x, acc); others: acc = acc + v.
// Grid: (rows of w / (8 / TEAM), rows of y). Eight invocations, which are neighbours in a subgroup, make the value v of a
// group: 32 weights each, or two of the 16 lanes. TEAM of these eights share an output: each takes its groups in turn,
// and the first one adds up.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
layout(constant_id = 1) const uint X = kF32;
layout(constant_id = 2) const uint TEAM = 1;
// What the kernel has.
uint64_t matrix();
uint64_t row_of_x();
float with_bias(float value, uint m);

const uint kEight = 8, kEights = kWidth / kEight;
shared float values[kEights], factors[kEights];

int sum_of_eight(int v) {
  for (uint mask = 4; mask > 0; mask /= 2) v += subgroupShuffleXor(v, mask);
  return v;
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

// Values 32 i..32 i + 31: sub-blocks 2 i and 2 i + 1.
float k_group(uint64_t block, Words x, uint i) {
  int isum = 0, msum = 0;
  for (uint s = 2 * i; s < 2 * i + 2; ++s) {
    int sum = 0;
    for (uint k = 0; k < 16; k += 4) sum += dot4(codes4(block, 16 * s + k), x.v[9 + 4 * s + k / 4]);
    ivec2 sub = sub_block(block, s);
    isum += sub.x * sum;
    if (has_minimum()) msum += sub.y * bitfieldExtract(int(x.v[1 + s / 2]), int(s % 2 * 16), 16);
  }
  isum = sum_of_eight(isum);
  vec2 d = block_scales(block);
  return has_minimum() ? ZRT_FMA(float(isum), d.x, float(sum_of_eight(msum)) * -d.y) : float(isum) * d.x;
}

// Fixed16, values 32 i..32 i + 31: the codes times the high digits of x, and times the low ones.
float fixed_group(uint64_t block, Words x, uint i) {
  ivec2 high = ivec2(0), low = ivec2(0);  // of the weights: sums of its products with both digits of x
  for (uint k = 32 * i; k < 32 * i + 32; k += 4) {
    uint w_high = word_at(block + k), w_low = word_at(block + kLowDigits + k);
    uint x_high = x.v[1 + k / 4], x_low = x.v[65 + k / 4];
    high += ivec2(dot4(w_high, x_high), dot4(w_high, x_low));
    low += ivec2(dot4(w_low, x_high), dot4(w_low, x_low));
  }
  int a = sum_of_eight(256 * high.x + low.x), b = sum_of_eight(256 * high.y + low.y);
  return ZRT_FMA(float(a), 256.0, float(b)) * bf16_to_f32(half_at(block + kScale));
}

// Block i of the group; then all eight go through the group's blocks in order.
float group_of_blocks(uint64_t w, uint64_t x, uint first_block, uint n_blocks, uint i) {
  float scaled = 0.0, minimum = 0.0, dx = 0.0;
  if (i < n_blocks) {
    uint64_t block = w + uint64_t(first_block + i) * block_bytes();
    Words xb = Words(x + uint64_t(first_block + i) * kQ8A32Bytes);
    int isum = 0;
    for (uint k = 0; k < 32; k += 4) isum += dot4(codes4(block, k), xb.v[2 + k / 4]);
    vec2 d = block_scales(block);
    dx = uintBitsToFloat(xb.v[0]);
    scaled = float(isum) * d.x;
    minimum = float(int(xb.v[1])) * d.y;
  }
  float v = 0.0;
  uint begin = gl_SubgroupInvocationID & ~(kEight - 1);
  for (uint b = 0; b < kEight; ++b) {
    float b_scaled = subgroupShuffle(scaled, begin + b), b_dx = subgroupShuffle(dx, begin + b);
    float b_minimum = has_minimum() ? subgroupShuffle(minimum, begin + b) : 0.0;
    if (b >= n_blocks) continue;
    v = ZRT_FMA(b_scaled, b_dx, v);
    if (has_minimum()) v = ZRT_FMA(b_minimum, b_dx, v);
  }
  return v;
}

void main() {
  uint id = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID, i = id % kEight, eight = id / kEight;
  uint lane = eight % TEAM, m = gl_WorkGroupID.x * (kEights / TEAM) + eight / TEAM, n_groups = (p.k + 255) / 256;
  bool has_factors = X == kQ8A256 || X == kQ16A256;
  // What is past the end is computed from the last row or group, so that no invocation leaves a shuffle, and not used.
  uint64_t w = matrix() + uint64_t(min(m, p.m - 1)) * p.w_row_bytes, x = row_of_x();
  float acc = 0.0;
  for (uint first = 0; first < n_groups; first += TEAM) {
    uint g = min(first + lane, n_groups - 1);
    float v, factor = 1.0;
    uint64_t block = w + uint64_t(g) * block_bytes();  // of a format with blocks of 256
    switch (X) {
      case kQ8A32: v = group_of_blocks(w, x, 8 * g, min(8, p.k / 32 - 8 * g), i); break;
      case kQ8A256: {
        Words group = Words(x + uint64_t(g) * kQ8A256Bytes);
        v = k_group(block, group, i);
        factor = uintBitsToFloat(group.v[0]);
        break;
      }
      case kQ16A256: {
        Words group = Words(x + uint64_t(g) * kQ16A256Bytes);
        v = fixed_group(block, group, i);
        factor = uintBitsToFloat(group.v[0]);
        break;
      }
      default: v = float_group(w, x, 256 * g, min(256, p.k - 256 * g), i);
    }
    if (TEAM == 1) {
      acc = has_factors ? ZRT_FMA(v, factor, acc) : acc + v;
      continue;
    }
    if (i == 0) {
      values[eight] = v;
      factors[eight] = factor;
    }
    barrier();
    for (uint t = 0; t < TEAM && first + t < n_groups; ++t) {
      uint from = eight - lane + t;
      acc = has_factors ? ZRT_FMA(values[from], factors[from], acc) : acc + values[from];
    }
    barrier();
  }
  if (i != 0 || lane != 0 || m >= p.m) return;
  Floats(float_row(p.y, row(), p.m)).v[m] = with_bias(acc, m);
}
