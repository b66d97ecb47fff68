// kernels/common/kv_integer.h for GLSL: where a page part of n_heads heads has the codes of a head, two in a word, and
// its scales. Words of keys: [head_dim / 2][16 tokens]; of values: [8 pairs of tokens][head_dim].
const float kMostCode = 32639.0;
uint codes_at(uint head, uint head_dim) { return head * 32 * head_dim; }
uint scales_at(uint head, uint n_heads, uint head_dim) { return codes_at(n_heads, head_dim) + head * 32; }
