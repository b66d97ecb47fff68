// Which matrix and row linear.glsl and linear_row.glsl compute for MOE_LINEAR: y[c] = LINEAR(x[c / choices], w[ids[c]])
// for each choice c, which is one token's use of one expert. REQUIRES: ids are those of experts, which MOE_GATE_TOPK
// ensures.
uint64_t matrix() { return p.w + uint64_t(Words(p.ids).v[gl_WorkGroupID.x]) * p.matrix_bytes; }
uint n_rows() { return 1; }
uint64_t row_of_x(uint t) { return p.x + uint64_t(gl_WorkGroupID.x / p.choices) * p.x_row_bytes; }
void store(uint t, uint m, float value) { Floats(float_row(p.y, gl_WorkGroupID.x, p.m)).v[m] = value; }
