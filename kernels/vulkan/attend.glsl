// FLASH_ATTN but for how cells are read: causal attention of a token over its slot's paged K and V. Head h reads kv head
// h / (n_heads / n_kv_heads). With window > 0, token i sees token j where i - j < window. With softcap > 0,
// s = cap * tanh(s / cap). Masked tokens are skipped, never added.
// Order (rule 5): the history is cut at absolute positions into chunks of 128.
//   In a chunk: max = the largest score; p_j = exp(s_j - max); l = sum of p_j in 16 lanes (lane = j mod 16), folded; o of
//   the chunk is made by the cells' kernel.
//   Chunks merge in ascending order: m' = max(m, m_c), a = exp(m - m'), b = exp(m_c - m'), l = fma(l_c, b, l * a),
//   o = fma(o_c, b, o * a). y = o * (1 / l).
// Grid: (heads, tokens). 128 invocations: a token of the chunk each, then values of V.
// Included after their number and exact_math.glsl.
#include "largest.glsl"
PUSH(FlashAttn);
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

void main() {
  uint id = gl_LocalInvocationID.x, head = gl_WorkGroupID.x;
  uint position = uint(Ints(p.positions).v[row()]);
  History history = History(head / (p.n_heads / p.n_kv_heads),
                            p.pages + uint64_t(Ints(p.slots).v[row()]) * p.width * 4u);
  read_query(float_row(p.q, row() * p.n_heads + head, p.head_dim));
  uint first_seen = p.window > 0u && position >= p.window ? position - p.window + 1 : 0;
  float total_max = 0.0, total_sum = 0.0, total[kHeld];
  bool is_first = true;
  for (uint at = first_seen / kChunk * kChunk; at <= position; at += kChunk) {
    Span span = Span(at, max(at, first_seen) - at, min(at + kChunk, position + 1) - at);
    bool is_seen = id >= span.begin && id < span.end;
    float s = -kInfinity;
    if (is_seen) {
      s = score(history, at + id);
      if (p.softcap > 0.0) s = p.softcap * exact_tanh(s * rcp(p.softcap));
    }
    float chunk_max = largest(s, -kInfinity);
    weights[id] = is_seen ? exact_exp(s - chunk_max) : 0.0;
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
    float chunk_sum = fold16(lane);
    float new_max = is_first || chunk_max > total_max ? chunk_max : total_max;
    float a = is_first ? 0.0 : exact_exp(total_max - new_max), b = is_first ? 1.0 : exact_exp(chunk_max - new_max);
    prepare_weights(history, span);
    for (uint h = 0; h < kHeld; ++h) {
      uint i = h * kAttendWidth + id;
      if (i >= p.v_head_dim) break;
      float o = weighed(history, span, i);
      total[h] = is_first ? o : ZRT_FMA(o, b, total[h] * a);
    }
    total_sum = is_first ? chunk_sum : ZRT_FMA(chunk_sum, b, total_sum * a);
    total_max = new_max;
    is_first = false;
  }
  float r = rcp(total_sum);
  Floats y = Floats(float_row(p.y, row() * p.n_heads + head, p.v_head_dim));
  for (uint h = 0; h < kHeld; ++h) {
    uint i = h * kAttendWidth + id;
    if (i < p.v_head_dim) y.v[i] = total[h] * r;
  }
}
