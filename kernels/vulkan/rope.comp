// ROPE in place: a pair (a, b) of a head becomes (a c - b s, a s + b c) with c, s of the token's position.
//   neox = 1: pairs (i, i + n_rot/2); neox = 0: pairs (2i, 2i + 1), i below n_rot/2
// Order: a*c rounded, then fma(-b, s, a*c); a*s rounded, then fma(b, c, a*s).
// Grid: (pairs of a row / 64, tokens).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kWidth) in;
PUSH(Rope);

void main() {
  uint pairs = p.n_rot / 2, head = column() / pairs, i = column() % pairs;
  if (head * p.head_dim >= p.d) return;
  uint first = head * p.head_dim + (p.neox != 0u ? i : 2 * i), second = p.neox != 0u ? first + pairs : first + 1;
  Floats x = Floats(float_row(p.x, row(), p.d));
  Floats table = Floats(float_row(p.table, uint(Ints(p.positions).v[row()]), p.n_rot));
  float a = x.v[first], b = x.v[second], c = table.v[2 * i], s = table.v[2 * i + 1];
  x.v[first] = ZRT_FMA(-b, s, a * c);
  x.v[second] = ZRT_FMA(b, c, a * s);
}
