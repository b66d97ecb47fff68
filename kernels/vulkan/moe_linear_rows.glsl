// The matrix and the row of MOE_LINEAR, for linear.glsl and linear_row.glsl: y[c] = LINEAR(x[c / choices], w[ids[c]]) for
// each choice c of an expert. MOE_GATE_TOPK gives ids within the stack.
uint64_t matrix() { return p.w + uint64_t(Words(p.ids).v[gl_WorkGroupID.x]) * p.matrix_bytes; }
uint n_rows() { return 1; }
uint64_t row_of_x(uint t) { return p.x + uint64_t(gl_WorkGroupID.x / p.choices) * p.x_row_bytes; }
void store(uint t, uint m, float value) { Floats(float_row(p.y, gl_WorkGroupID.x, p.m)).v[m] = value; }
