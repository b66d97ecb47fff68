// FLASH_ATTN but for how cells are read: causal attention of a token over its slot's paged K and V. Head h reads kv head
// h / (n_heads / n_kv_heads). With window > 0, token i sees token j where i - j < window. With softcap > 0,
// s = cap * tanh(s / cap). Masked tokens are skipped, never added.
// Order (rule 5): the history is cut at absolute positions into chunks of 128.
//   In a chunk: max = the largest score; p_j = exp(s_j - max); l = sum of p_j in 16 lanes (lane = j mod 16), folded; o of
//   the chunk is made by the cells' kernel.
//   Chunks merge in ascending order: m' = max(m, m_c), a = exp(m - m'), b = exp(m_c - m'), l = fma(l_c, b, l * a),
//   o = fma(o_c, b, o * a). y = o * (1 / l).
// 128 invocations: a token of the chunk each, then values of V. With SPLIT a workgroup makes one chunk's o, max and l, for
// flash_attn_merge.comp, grid: (heads, tokens, chunks); else it goes through all of them, grid: (heads, tokens).
// Included after their number and exact_math.glsl.
#include "largest.glsl"
PUSH(FlashAttn);
layout(constant_id = 1) const bool SPLIT = false;
const uint kChunk = kAttendWidth, kHeld = kMostHeadDim / kAttendWidth;
shared float weights[kChunk], lane_sums[16];

// Tokens [at + begin, at + end) are those of the chunk that the row sees.
struct Span {
  uint at, begin, end;
};
// Where the row's kv head and pages are.
struct History {
  uint kv_head;
  uint64_t pages;
};
uint64_t page_of(History history, uint j) {
  return p.cache + uint64_t(Words(history.pages).v[j / 16]) * p.page_bytes;
}

// What the cells' kernel has. All invocations call each of them, but for score: that of a token seen does.
void read_query(uint64_t q);
float score(History history, uint j);  // without the softcap
// Weights of 0 outside the span are there; what they become is seen by all afterwards.
void prepare_weights(History history, Span span);
float weighed(History history, Span span, uint i);  // o[i] of the chunk

// The weights of a chunk's tokens, their sum and the largest score. All invocations call it.
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
