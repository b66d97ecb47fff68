// Computes RESIDUAL_RMS_NORM and QUANTIZE: x = x + y in place, then z = RMS_NORM(x, w) over whole rows. z is written as
// floats (p.z) and in the type Y (p.q). y, p.z and p.q may each be absent. If `rows` is given, row r of the results is
// made of row rows[r] of x and y, and x is not stored.
// Order of sums: x + y element by element; then as in rms_norm.comp and quantize.glsl.
// Grid: (1, rows). Each workgroup computes one row; each invocation has groups of four neighbouring values. For the sum
// of squares the values go through the workgroup's memory to other invocations: 16 of them, one per lane, sum each run
// of 256 values.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "squares.glsl"
layout(local_size_x = kNormWidth) in;
PUSH(ResidualRmsNorm);
#include "quantize.glsl"
const uint kParts = 2, kTurn = 4 * kNormWidth, kHeldValues = kParts * kTurn, kRuns = kHeldValues / 256;
shared float staged[kHeldValues], lanes[kRuns * 16], run_sums[kRuns];

// Returns the values i..i + 3 of the row at an address; past its end they are 0.
vec4 four(uint64_t at, uint i) {
  if (p.d % 4 == 0 && i < p.d) return FloatQuads(at).v[i / 4];
  vec4 v = vec4(0.0);
  for (uint k = 0; k < 4; ++k)
    if (i + k < p.d) v[k] = Floats(at).v[i + k];
  return v;
}

void main() {
  uint number = Words(or_else(p.rows, p.x)).v[row()];
  uint id = own_id(), from = p.rows != 0 ? number : row();
  uint64_t x = float_row(p.x, from, p.d), y = float_row(p.y, from, p.d), z = float_row(p.z, row(), p.d);
  bool is_stored = p.y != 0 && p.rows == 0;
  float sum = 0.0;
  vec4 v[kParts];
  for (uint first = 0; first < p.d; first += kHeldValues) {
    for (uint part = 0; part < kParts; ++part) {
      uint i = first + part * kTurn + 4 * id;
      v[part] = four(x, i);
      if (p.y != 0) v[part] = v[part] + four(y, i);
    }
    barrier();
    for (uint part = 0; part < kParts; ++part)
      for (uint k = 0; k < 4; ++k) {
        uint at = part * kTurn + 4 * id + k;
        staged[at] = v[part][k];
        if (is_stored && first + at < p.d) Floats(x).v[first + at] = v[part][k];
      }
    barrier();
    if (id < kRuns * 16) {
      float lane[16];
      for (uint j = 0; j < 16; ++j) lane[j] = staged[id / 16 * 256 + id % 16 + 16 * j];
      lanes[id] = sum_of_squares(lane);
    }
    barrier();
    if (id < kRuns) {
      float run[16];
      for (int l = 0; l < 16; ++l) run[l] = lanes[16 * id + l];
      run_sums[id] = fold16(run);
    }
    barrier();
    for (uint run = 0; run < kRuns && first + run * 256 < p.d; ++run) sum = sum + run_sums[run];
  }
  float r = rsqrt(ZRT_FMA(sum, p.inverse, p.eps));
  for (uint first = 0; first < p.d; first += kHeldValues)
    for (uint part = 0; part < kParts && first + part * kTurn < p.d; ++part) {
      uint i = first + part * kTurn + 4 * id;
      if (p.d > kHeldValues) {  // the values of earlier rounds are no longer held
        v[part] = four(x, i);
        if (p.y != 0 && !is_stored) v[part] = v[part] + four(y, i);
      }
      vec4 w = four(p.w, i);
      float values[4];
      for (uint k = 0; k < 4; ++k) {
        values[k] = i + k < p.d ? v[part][k] * r * w[k] : 0.0;
        if (p.z != 0 && i + k < p.d) Floats(z).v[i + k] = values[k];
      }
      if (p.q != 0) quantize4(values, i, p.d, p.q + uint64_t(row()) * p.q_row_bytes);
    }
}
