// Computes SLICE, the columns [first, first + width) of each group of a row: y[t][g][i] = x[t][g][first + i]. Grid:
// (groups * width / 64, rows). Each invocation copies one element.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = kWidth) in;
PUSH(Slice);

void main() {
  uint i = column(), n = p.groups * p.width;
  if (i >= n) return;
  uint from = i / p.width * p.group + p.first + i % p.width;
  Words(float_row(p.y, row(), n)).v[i] = Words(float_row(p.x, row(), p.groups * p.group)).v[from];
}
