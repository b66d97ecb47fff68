// Computes ADD in place: x = x + y. Grid: (width / 64, rows). Each invocation computes one element.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = kWidth) in;
PUSH(Add);

void main() {
  uint i = column();
  if (i >= p.width) return;
  Floats x = Floats(float_row(p.x, row(), p.width));
  x.v[i] = x.v[i] + Floats(float_row(p.y, row(), p.width)).v[i];
}
