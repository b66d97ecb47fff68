// Computes ARGMAX with the answer of a greedy SAMPLE: tokens[r] is the index of the largest logit of row r, the lower
// one on a tie. NaNs are skipped. If the largest logit is infinite, or all are NaN, tokens[r] is -1.
// Grid: (1, rows). Each workgroup computes one row. Each of its kArgmaxWidth invocations takes every kArgmaxWidth-th
// logit; then pairs of invocations compare what they found, until one is left.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
layout(local_size_x = kArgmaxWidth) in;
PUSH(Argmax);
shared uint keys[kArgmaxWidth], ids[kArgmaxWidth];

// Returns a number whose order is that of x. A NaN gives 0, the lowest, and both zeros give the same number.
uint key_of(float x) {
  uint bits = floatBitsToUint(x);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0u;
  if (bits == 0x80000000u) bits = 0u;
  return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}

void main() {
  uint id = gl_LocalInvocationID.x, best = 0u, key = 0u;
  uint64_t x = float_row(p.x, row(), p.width);
  // Sixteen logits are loaded before they are compared, so that the loads overlap. Their indices ascend, so of equal
  // logits the first one is kept.
  for (uint first = id; first < p.width; first += 16 * kArgmaxWidth) {
    float v[16];
    [[unroll]] for (uint k = 0; k < 16; ++k) v[k] = Floats(x).v[min(first + k * kArgmaxWidth, p.width - 1)];
    [[unroll]] for (uint k = 0; k < 16; ++k) {
      uint next = key_of(v[k]);
      if (next > key && first + k * kArgmaxWidth < p.width) {
        key = next;
        best = first + k * kArgmaxWidth;
      }
    }
  }
  keys[id] = key;
  ids[id] = best;
  for (uint half_width = kArgmaxWidth / 2; half_width > 0; half_width /= 2) {
    barrier();
    if (id >= half_width) continue;
    uint other = keys[id + half_width];
    if (other > keys[id] || (other == keys[id] && ids[id + half_width] < ids[id])) {
      keys[id] = other;
      ids[id] = ids[id + half_width];
    }
  }
  // A finite logit has a key between those of the two infinities.
  if (id == 0) Ints(p.tokens).v[row()] = keys[0] > 0x007FFFFFu && keys[0] < 0xFF800000u ? int(ids[0]) : -1;
}
