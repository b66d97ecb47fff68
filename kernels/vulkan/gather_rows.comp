// GATHER_ROWS: y[r] = x[rows[r]]. Bits are moved, not values. Grid: (width / 64, output rows).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = kWidth) in;
PUSH(GatherRows);

void main() {
  uint i = column();
  if (i >= p.width) return;
  uint from = uint(Ints(p.rows).v[row()]);
  Words(float_row(p.y, row(), p.width)).v[i] = Words(float_row(p.x, from, p.width)).v[i];
}
