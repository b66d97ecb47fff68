// Which matrix and rows linear.glsl and linear_row.glsl compute for LINEAR: y[t][m] = dot(w[m], x[t]) + bias[m]. The
// bias is added last.
uint64_t matrix() { return p.w; }
uint first_row() { return gl_WorkGroupID.x * TOKENS; }
uint n_rows() { return min(Words(p.n_rows).v[0] - first_row(), TOKENS); }
uint64_t row_of_x(uint t) { return p.x + uint64_t(first_row() + t) * p.x_row_bytes; }
void store(uint t, uint m, float value) {
  Floats(float_row(p.y, first_row() + t, p.m)).v[m] = p.bias != 0 ? value + Floats(p.bias).v[m] : value;
}
