// Computes SOFTCAP in place: x = cap * tanh(x / cap). Grid: (width / 64, rows). Each invocation computes one element.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kWidth) in;
PUSH(Softcap);

void main() {
  uint i = column();
  if (i >= p.width) return;
  Floats x = Floats(float_row(p.x, row(), p.width));
  x.v[i] = p.cap * exact_tanh(x.v[i] * rcp(p.cap));
}
