// Computes RMS_NORM: in each group of a row, y = x * r * w with r = rsqrt(sum(x^2) / group + eps). If w is absent, y =
// x * r. y may be x.
// Order of sums: the sum of squares is the float dot of x with itself (rule 4); the mean is fma(sum, 1/group, eps);
// then y = (x * r) * w.
// Grid: (groups of a row, rows). Each workgroup of 64 invocations computes one group. It sums four runs of 256 values
// at a time, with 16 invocations per run, one for each lane.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kWidth) in;
PUSH(RmsNorm);
shared float lanes[kWidth], sums[kWidth / 16];

void main() {
  uint id = gl_LocalInvocationID.x, at = gl_WorkGroupID.x * p.group;
  Floats x = Floats(float_row(p.x, row(), p.d) + uint64_t(at) * 4u);
  Floats y = Floats(float_row(p.y, row(), p.d) + uint64_t(at) * 4u);
  float sum = 0.0;
  for (uint first = 0; first < p.group; first += kWidth * 16) {
    uint begin = first + id / 16 * 256, end = min(begin + 256, p.group);
    float lane = 0.0;
    for (uint i = begin + id % 16; i < end; i += 16) lane = ZRT_FMA(x.v[i], x.v[i], lane);
    lanes[id] = lane;
    barrier();
    if (id % 16 == 0) {
      float run[16];
      for (int l = 0; l < 16; ++l) run[l] = lanes[id + l];
      sums[id / 16] = fold16(run);
    }
    barrier();
    for (uint run = 0; run < kWidth / 16 && first + run * 256 < p.group; ++run) sum = sum + sums[run];
  }
  float r = rsqrt(ZRT_FMA(sum, p.inverse, p.eps));
  for (uint i = id; i < p.group; i += kWidth) {
    float v = x.v[i] * r;
    y.v[i] = p.w != 0 ? v * Floats(p.w).v[i] : v;
  }
}
