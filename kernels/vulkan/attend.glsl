// Computes FLASH_ATTN, causal attention of one token over its slot's paged K and V, whatever the layout of the cache
// is. The kernel that includes this file defines how cells are read (flash_attn.comp, flash_attn_integer.comp). Head h
// reads kv head h / (n_heads / n_kv_heads). With window > 0, token i sees token j if i - j < window. With softcap > 0,
// scores become s = cap * tanh(s / cap). Masked tokens are skipped, never added.
// Order of sums (docs/arithmetic.md, rule 5): the history is split into chunks of 128 tokens, at multiples of 128.
//   Within a chunk: max = the largest score; p_j = exp(s_j - max); l = the sum of p_j in 16 lanes (lane = j mod 16),
//   folded; o = the sum of p_j * v_j, as the including kernel defines it.
//   Chunks are merged in ascending order. m, l, o are the totals so far, and m_c, l_c, o_c the chunk's: m' = max(m,
//   m_c), a = exp(m - m'), b = exp(m_c - m'), l = fma(l_c, b, l * a), o = fma(o_c, b, o * a).
//   y = o * (1 / l)
// Each workgroup has 128 invocations and computes one head of one token. In a chunk each invocation computes the score
// of one token, then the columns i, i + 128, ... of o.
// Grid: (heads, tokens); the workgroup goes through all chunks. With SPLIT: (heads, tokens, chunks); the workgroup
// computes o, m and l of one chunk, and flash_attn_merge.comp merges them.
// Included after local_size_x and exact_math.glsl.
#include "largest.glsl"
PUSH(FlashAttn);
layout(constant_id = 1) const bool SPLIT = false;
const uint kChunk = kAttendWidth, kHeld = kMostHeadDim / kAttendWidth;
shared float weights[kChunk], lane_sums[16];

// The tokens of a chunk to which the row attends: [at + begin, at + end), where the chunk begins at token `at`.
struct Span {
  uint at, begin, end;
};
// The kv head that the row reads, and the address of its slot's page table. page_of() returns the address of the page
// with token j.
struct History {
  uint kv_head;
  uint64_t pages;
};
uint64_t page_of(History history, uint j) {
  return p.cache + uint64_t(Words(history.pages).v[j / 16]) * p.page_bytes;
}

// The including kernel defines the following functions. read_query() and prepare_weights() are called by all
// invocations, score() by those whose token the row sees, and weighed() by those with i < v_head_dim.
void read_query(uint64_t q);
float score(History history, uint j);  // returns dot(q, k_j) * scale, without the softcap
// Prepares the chunk's `weights`, which are 0 outside the span. All invocations may read the result when it returns.
void prepare_weights(History history, Span span);
float weighed(History history, Span span, uint i);  // returns o[i] of the chunk

// Computes the weights p_j of a chunk's tokens, their sum and the largest score. REQUIRES: all invocations call it.
struct Chunk {
  float most, sum;
};
Chunk weigh(History history, Span span) {
  uint id = gl_LocalInvocationID.x;
  bool is_seen = id >= span.begin && id < span.end;
  float s = -kInfinity;
  if (is_seen) {
    s = score(history, span.at + id);
    if (p.softcap > 0.0) s = p.softcap * exact_tanh(s * rcp(p.softcap));
  }
  Chunk chunk;
  chunk.most = largest(s, -kInfinity);
  weights[id] = is_seen ? exact_exp(s - chunk.most) : 0.0;
  barrier();
  if (id < 16) {
    float sum = 0.0;
    for (uint j = id; j < span.end; j += 16)
      if (j >= span.begin) sum = sum + weights[j];
    lane_sums[id] = sum;
  }
  barrier();
  float lane[16];
  for (int l = 0; l < 16; ++l) lane[l] = lane_sums[l];
  chunk.sum = fold16(lane);
  prepare_weights(history, span);
  return chunk;
}

void main() {
  uint id = gl_LocalInvocationID.x, head = gl_WorkGroupID.x;
  uint position = Words(p.positions).v[row()];
  uint first_seen = p.window > 0u && position >= p.window ? position - p.window + 1 : 0;
  uint first = SPLIT ? gl_WorkGroupID.z * kChunk : first_seen / kChunk * kChunk, last = SPLIT ? first : position;
  if (first > position || first + kChunk <= first_seen) return;
  History history = History(head / (p.n_heads / p.n_kv_heads),
                            p.pages + uint64_t(Ints(p.slots).v[row()]) * p.width * 4u);
  read_query(float_row(p.q, row() * p.n_heads + head, p.head_dim));
  float total_max = 0.0, total_sum = 0.0, total[kHeld];
  bool is_first = true;
  for (uint at = first; at <= last; at += kChunk) {
    Span span = Span(at, max(at, first_seen) - at, min(at + kChunk, position + 1) - at);
    Chunk chunk = weigh(history, span);
    float new_max = is_first || chunk.most > total_max ? chunk.most : total_max;
    float a = is_first ? 0.0 : exact_exp(total_max - new_max), b = is_first ? 1.0 : exact_exp(chunk.most - new_max);
    for (uint h = 0; h < kHeld; ++h) {
      uint i = h * kAttendWidth + id;
      if (i >= p.v_head_dim) break;
      float o = weighed(history, span, i);
      total[h] = is_first ? o : ZRT_FMA(o, b, total[h] * a);
    }
    total_sum = is_first ? chunk.sum : ZRT_FMA(chunk.sum, b, total_sum * a);
    total_max = new_max;
    is_first = false;
  }
  if (SPLIT) {
    Floats part = Floats(p.y + ((uint64_t(gl_WorkGroupID.z) * gl_NumWorkGroups.y + row()) * p.n_heads + head) *
                                   (p.v_head_dim + 2) * 4u);
    for (uint h = 0; h < kHeld; ++h) {
      uint i = h * kAttendWidth + id;
      if (i < p.v_head_dim) part.v[2 + i] = total[h];
    }
    if (id == 0) part.v[0] = total_max;
    if (id == 1) part.v[1] = total_sum;
    return;
  }
  float r = rcp(total_sum);
  Floats y = Floats(float_row(p.y, row() * p.n_heads + head, p.v_head_dim));
  for (uint h = 0; h < kHeld; ++h) {
    uint i = h * kAttendWidth + id;
    if (i < p.v_head_dim) y.v[i] = total[h] * r;
  }
}
