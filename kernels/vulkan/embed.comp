// Computes EMBED: y[t] = scale * table[ids[t]], converted to float. Grid: (d / 64, tokens). Each invocation computes
// one element. REQUIRES: ids are within the table, which the executor checks.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "formats.glsl"
layout(local_size_x = kWidth) in;
PUSH(Embed);

void main() {
  uint i = column();
  if (i >= p.d) return;
  float value = element(p.table + uint64_t(Ints(p.ids).v[row()]) * p.row_bytes, i);
  Floats(float_row(p.y, row(), p.d)).v[i] = p.scale != 1.0 ? value * p.scale : value;
}
