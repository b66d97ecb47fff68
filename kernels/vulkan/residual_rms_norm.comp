// RESIDUAL_RMS_NORM and QUANTIZE: x = x + y; z = RMS_NORM(x, w) over whole rows; z as floats, and in the type Y. Each of y,
// z and quantized z may be absent. With `rows` row r is that of number rows[r], and x is not stored.
// Order: x + y element by element; then that of rms_norm.comp and quantize.glsl.
// Grid: (1, rows). 16 invocations have a run of 256 values, a lane each; then an invocation has four values at a time.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kNormWidth) in;
PUSH(ResidualRmsNorm);
#include "quantize.glsl"
const uint kRuns = kNormWidth / 16;
shared float lanes[kNormWidth], run_sums[kRuns];

void main() {
  uint id = gl_LocalInvocationID.x, from = p.rows != 0 ? Words(p.rows).v[row()] : row();
  Floats x = Floats(float_row(p.x, from, p.d)), y = Floats(float_row(p.y, from, p.d));
  float sum = 0.0;
  for (uint first = 0; first < p.d; first += kRuns * 256) {
    uint begin = first + id / 16 * 256, end = min(begin + 256, p.d);
    float lane = 0.0;
    for (uint i = begin + id % 16; i < end; i += 16) {
      float v = p.y != 0 ? x.v[i] + y.v[i] : x.v[i];
      lane = ZRT_FMA(v, v, lane);
    }
    lanes[id] = lane;
    barrier();
    if (id % 16 == 0) {
      float run[16];
      for (int l = 0; l < 16; ++l) run[l] = lanes[id + l];
      run_sums[id / 16] = fold16(run);
    }
    barrier();
    for (uint run = 0; run < kRuns && first + run * 256 < p.d; ++run) sum = sum + run_sums[run];
    barrier();
  }
  float r = rsqrt(ZRT_FMA(sum, p.inverse, p.eps));
  Floats w = Floats(p.w), z = Floats(float_row(p.z, row(), p.d));
  for (uint first = 0; first < p.d; first += 4 * kNormWidth) {
    uint i = first + 4 * id;
    float values[4];
    for (uint k = 0; k < 4; ++k) {
      values[k] = 0.0;
      if (i + k >= p.d) continue;
      float v = p.y != 0 ? x.v[i + k] + y.v[i + k] : x.v[i + k];
      if (p.y != 0 && p.rows == 0) x.v[i + k] = v;
      values[k] = v * r * w.v[i + k];
      if (p.z != 0) z.v[i + k] = values[k];
    }
    if (p.q != 0) quantize4(values, i, p.d, p.q + uint64_t(row()) * p.q_row_bytes);
  }
}
