// GLU (glu.comp) and QUANTIZE of what it gives, which is kept in no other form. Grid: (width / 256, rows).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kWidth) in;
PUSH(GluQuantize);
#include "quantize.glsl"

void main() {
  uint i = column() * 4;
  Floats gate = Floats(float_row(p.gate, row(), p.width)), up = Floats(float_row(p.up, row(), p.width));
  float values[4];
  for (uint k = 0; k < 4; ++k) {
    values[k] = 0.0;
    if (i < p.width) values[k] = (p.act == 1u ? gelu_tanh(gate.v[i + k]) : silu(gate.v[i + k])) * up.v[i + k];
  }
  quantize4(values, i, p.width, p.y + uint64_t(row()) * p.y_row_bytes);
}
