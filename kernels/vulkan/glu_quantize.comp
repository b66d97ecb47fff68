// GLU (glu.comp) and QUANTIZE of what it gives, which is kept in no other form. Grid: (width / 256, rows), a value an
// invocation, then four for the first 64.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = 256) in;
PUSH(GluQuantize);
#include "quantize.glsl"
shared float gated[256];

void main() {
  uint id = own_id(), first = gl_WorkGroupID.x * 256, i = first + id;
  gated[id] = 0.0;
  if (i < p.width) {
    float gate = Floats(float_row(p.gate, row(), p.width)).v[i], up = Floats(float_row(p.up, row(), p.width)).v[i];
    gated[id] = (p.act == 1u ? gelu_tanh(gate) : silu(gate)) * up;
  }
  barrier();
  bool has_part = id < 64;
  float values[4];
  for (uint k = 0; k < 4; ++k) values[k] = has_part ? gated[4 * id + k] : 0.0;
  quantize4(values, has_part ? first + 4 * id : p.width, p.width, p.y + uint64_t(row()) * p.y_row_bytes);
}
