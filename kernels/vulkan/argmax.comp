// ARGMAX: tokens[r] = the lowest number of the largest of a row of logits. A NaN is never it; where it is no finite number
// tokens[r] is -1. Grid: (1, rows).
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
layout(local_size_x = kArgmaxWidth) in;
PUSH(Argmax);
shared uint keys[kArgmaxWidth], ids[kArgmaxWidth];

// Numbers whose order is that of x: 0 for a NaN, the same for both zeros.
uint key_of(float x) {
  uint bits = floatBitsToUint(x);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0u;
  if (bits == 0x80000000u) bits = 0u;
  return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}

void main() {
  uint id = gl_LocalInvocationID.x, best = 0u, key = 0u;
  uint64_t x = float_row(p.x, row(), p.width);
  // Sixteen numbers are on their way at once. They ascend, so that the first of equals stays.
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
  // The keys of the infinities, and what lies beyond them.
  if (id == 0) Ints(p.tokens).v[row()] = keys[0] > 0x007FFFFFu && keys[0] < 0xFF800000u ? int(ids[0]) : -1;
}
