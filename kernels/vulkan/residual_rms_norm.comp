// RESIDUAL_RMS_NORM and QUANTIZE: x = x + y; z = RMS_NORM(x, w) over whole rows; z as floats, and in the type Y.
// Each of y, z and quantized z may be absent. With `rows` row r is that of number rows[r], and x is not stored.
// Order: x + y element by element; then that of rms_norm.comp and quantize.glsl.
// Grid: (1, rows). An invocation has runs of four values, side by side; for the sum of squares they go through
// memory of the workgroup to 16 invocations a run of 256 values, a lane each.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "squares.glsl"
layout(local_size_x = kNormWidth) in;
PUSH(ResidualRmsNorm);
#include "quantize.glsl"
const uint kParts = 2, kTurn = 4 * kNormWidth, kHeldValues = kParts * kTurn, kRuns = kHeldValues / 256;
shared vec4 staged[kHeldValues / 4];
shared float lanes[kRuns * 16], run_sums[kRuns];

// Values i..i + 3 of a row, 0 past its end, and how they are stored.
vec4 four(uint64_t at, uint i) {
  if (p.d % 4 == 0 && i < p.d) return FloatQuads(at).v[i / 4];
  vec4 v = vec4(0.0);
  for (uint k = 0; k < 4; ++k)
    if (i + k < p.d) v[k] = Floats(at).v[i + k];
  return v;
}

void put_four(uint64_t at, uint i, vec4 v) {
  if (p.d % 4 == 0) {
    if (i < p.d) FloatQuads(at).v[i / 4] = v;
    return;
  }
  for (uint k = 0; k < 4; ++k)
    if (i + k < p.d) Floats(at).v[i + k] = v[k];
}

void main() {
  uint id = own_id(), from = p.rows != 0 ? Words(p.rows).v[row()] : row();
  uint64_t x = float_row(p.x, from, p.d), y = float_row(p.y, from, p.d), z = float_row(p.z, row(), p.d);
  bool is_stored = p.y != 0 && p.rows == 0;
  float sum = 0.0;
  vec4 v[kParts], w[kParts];
  // Of rows that are held the weights are on their way while the sum is made.
  bool is_held = p.d <= kHeldValues;
  [[unroll]] for (uint part = 0; part < kParts; ++part)
    if (is_held) w[part] = four(p.w, part * kTurn + 4 * id);
  for (uint first = 0; first < p.d; first += kHeldValues) {
    [[unroll]] for (uint part = 0; part < kParts; ++part) {
      uint i = first + part * kTurn + 4 * id;
      v[part] = four(x, i);
      if (p.y != 0) v[part] = v[part] + four(y, i);
    }
    barrier();
    [[unroll]] for (uint part = 0; part < kParts; ++part) {
      uint at = part * kNormWidth + id;
      staged[at] = v[part];
      if (is_stored) put_four(x, first + 4 * at, v[part]);
    }
    barrier();
    if (id < kRuns * 16) {
      float lane[16];
      for (uint j = 0; j < 16; ++j) lane[j] = staged[id / 16 * 64 + 4 * j + id % 16 / 4][id % 4];
      lanes[id] = sum_of_squares(lane);
    }
    barrier();
    if (id < kRuns) {
      float run[16];
      for (int l = 0; l < 16; ++l) run[l] = lanes[16 * id + l];
      run_sums[id] = fold16(run);
    }
    barrier();
    [[unroll]] for (uint run = 0; run < kRuns; ++run) {
      float of_run = run_sums[run];
      sum = first + run * 256 < p.d ? sum + of_run : sum;
    }
  }
  float r = rsqrt(ZRT_FMA(sum, p.inverse, p.eps));
  for (uint first = 0; first < p.d; first += kHeldValues)
    [[unroll]] for (uint part = 0; part < kParts; ++part) {
      if (first + part * kTurn >= p.d) break;
      uint i = first + part * kTurn + 4 * id;
      if (!is_held) {
        w[part] = four(p.w, i);
        v[part] = four(x, i);
        if (p.y != 0 && !is_stored) v[part] = v[part] + four(y, i);
      }
      float values[4];
      for (uint k = 0; k < 4; ++k) {
        values[k] = i + k < p.d ? v[part][k] * r * w[part][k] : 0.0;
      }
      if (p.z != 0) put_four(z, i, vec4(values[0], values[1], values[2], values[3]));
      if (p.q != 0) quantize4(values, i, p.d, p.q + uint64_t(row()) * p.q_row_bytes);
    }
}
