// Computes GLU: y = act(gate) * up, where act is silu (0) or gelu in its tanh form (1). Grid: (width / 64, rows). Each
// invocation computes one element.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kWidth) in;
PUSH(Glu);

void main() {
  uint i = column();
  if (i >= p.width) return;
  float gate = Floats(float_row(p.gate, row(), p.width)).v[i];
  float acted = p.act == 1u ? gelu_tanh(gate) : silu(gate);
  Floats(float_row(p.y, row(), p.width)).v[i] = acted * Floats(float_row(p.up, row(), p.width)).v[i];
}
