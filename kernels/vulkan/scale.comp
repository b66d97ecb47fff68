// Computes SCALE in place: x = (x * w) * scale, where w is one stored number or absent. Grid: (width / 64, rows). Each
// invocation computes one element.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = kWidth) in;
PUSH(Scale);

void main() {
  uint i = column();
  if (i >= p.width) return;
  Floats x = Floats(float_row(p.x, row(), p.width));
  float w = Floats(or_else(p.w, p.x)).v[0];
  x.v[i] = (p.w != 0 ? x.v[i] * w : x.v[i]) * p.scale;
}
