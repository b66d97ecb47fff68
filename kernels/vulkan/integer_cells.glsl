// The layout of caches of 16-bit integers (kernels/common/kv_integer.h). codes_at() and scales_at() return where the
// codes and the scales of `head` begin in a page part, in bytes. A page part is the K or the V of one layer in a page,
// with n_heads heads. A word has two codes: words of keys are [head_dim / 2][16 tokens], words of values [8 pairs of
// tokens][head_dim].
const float kMostCode = 32639.0;
uint codes_at(uint head, uint head_dim) { return head * 32 * head_dim; }
uint scales_at(uint head, uint n_heads, uint head_dim) { return codes_at(n_heads, head_dim) + head * 32; }
