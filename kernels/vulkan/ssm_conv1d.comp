// Computes SSM_CONV1D, a causal depthwise convolution with `width` taps over each channel, and silu:
//   y[t][c] = silu(sum over i of w[c][i] * x[t - width + 1 + i][c]); the last tap is the token itself
// The state keeps the last width - 1 inputs of each channel, oldest first. A token at position 0 begins with a state of
// zeros.
// Order of sums: acc = w0 * x0, then fma tap by tap, oldest first; tokens in order (rule 8).
// Grid: (channels / 64, runs). A run is the tokens of one slot in the step. Each invocation computes one channel of a
// run.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kWidth) in;
PUSH(SsmConv1d);

void main() {
  uint channel = column(), taps = p.width - 1;
  if (channel >= p.channels) return;
  uint first = Words(p.runs).v[2 * row()], n = Words(p.runs).v[2 * row() + 1];
  Floats state = Floats(float_row(p.state, Words(p.slots).v[first], taps * p.channels));
  Floats w = Floats(float_row(p.conv_w, channel, p.width));
  bool is_start = Words(p.positions).v[first] == 0u;
  float held[kMostTaps];
  for (uint i = 0; i < taps; ++i) held[i] = is_start ? 0.0 : state.v[i * p.channels + channel];
  for (uint t = first; t < first + n; ++t) {
    held[taps] = Floats(float_row(p.x, t, p.channels)).v[channel];
    float acc = w.v[0] * held[0];
    for (uint i = 1; i < p.width; ++i) acc = ZRT_FMA(w.v[i], held[i], acc);
    for (uint i = 0; i < taps; ++i) held[i] = held[i + 1];
    Floats(float_row(p.y, t, p.channels)).v[channel] = silu(acc);
  }
  for (uint i = 0; i < taps; ++i) state.v[i * p.channels + channel] = held[i];
}
