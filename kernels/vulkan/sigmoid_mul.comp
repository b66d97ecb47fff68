// Computes SIGMOID_MUL in place: x = x * sigmoid(gate), where gate has one number for each x, or one for the whole row.
// Grid: (width / 64, rows). Each invocation computes one element.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kWidth) in;
PUSH(SigmoidMul);

void main() {
  uint i = column();
  if (i >= p.width) return;
  Floats x = Floats(float_row(p.x, row(), p.width));
  x.v[i] = x.v[i] * sigmoid(Floats(float_row(p.gate, row(), p.gate_width)).v[p.gate_width == 1 ? 0 : i]);
}
