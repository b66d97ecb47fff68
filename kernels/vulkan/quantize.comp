// Computes QUANTIZE, which converts rows of floats to blocks of integers (quantize.glsl). Grid: (k / 256, rows). Each
// invocation converts four values.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kWidth) in;
PUSH(Quantize);
#include "quantize.glsl"

void main() {
  uint i = (gl_WorkGroupID.x * kWidth + own_id()) * 4;
  Floats x = Floats(float_row(p.x, row(), p.k));
  float values[4];
  for (uint k = 0; k < 4; ++k) values[k] = i < p.k ? x.v[i + k] : 0.0;
  quantize4(values, i, p.k, p.y + uint64_t(row()) * p.y_row_bytes);
}
