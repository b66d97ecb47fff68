// Computes GLU (glu.comp) and the QUANTIZE of its rows (quantize.glsl), which are not stored as floats. Each invocation
// computes EACH values of GLU. In steps of few rows EACH is 1, so that more invocations share the activations, which
// take long; then the first 64 invocations quantize four values each. In steps of many rows EACH is 4, and each
// invocation quantizes the values that it computed.
// Grid: (width / (256 EACH), rows).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = 256) in;
PUSH(GluQuantize);
#include "quantize.glsl"
layout(constant_id = 1) const uint EACH = 1;
shared float gated[256];

float glu(float gate, float up) { return (p.act == 1u ? gelu_tanh(gate) : silu(gate)) * up; }

void main() {
  uint id = own_id(), first = gl_WorkGroupID.x * 256 * EACH, i = first + 4 * id;
  uint64_t gate = float_row(p.gate, row(), p.width), up = float_row(p.up, row(), p.width);
  float values[4] = {0.0, 0.0, 0.0, 0.0};
  if (EACH == 4) {
    if (i < p.width) {  // width is a multiple of 32
      vec4 gates = FloatQuads(gate).v[i / 4], ups = FloatQuads(up).v[i / 4];
      for (uint k = 0; k < 4; ++k) values[k] = glu(gates[k], ups[k]);
    }
  } else {
    gated[id] = first + id < p.width ? glu(Floats(gate).v[first + id], Floats(up).v[first + id]) : 0.0;
    barrier();
    for (uint k = 0; k < 4; ++k) values[k] = id < 64 ? gated[4 * id + k] : 0.0;
    if (id >= 64) i = p.width;
  }
  quantize4(values, i, p.width, p.y + uint64_t(row()) * p.y_row_bytes);
}
