// SCALE: x = x * scale. Grid: (width / 64, rows).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = kWidth) in;
PUSH(Scale);

void main() {
  uint i = column();
  if (i >= p.width) return;
  Floats x = Floats(float_row(p.x, row(), p.width));
  x.v[i] = x.v[i] * p.scale;
}
