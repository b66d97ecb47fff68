// FLASH_ATTN: causal attention of a token over its slot's paged K and V, whose type is FORMAT; kv_write_batched.comp says
// where they lie. Head h reads kv head h / (n_heads / n_kv_heads). With window > 0, token i sees token j where
// i - j < window. With softcap > 0, s = cap * tanh(s / cap). Masked tokens are skipped, never added.
// Order (rule 5): the history is cut at absolute positions into chunks of 128.
//   In a chunk: s_j = dot(q, k_j) * scale (rule 4); max = the largest s_j; p_j = exp(s_j - max); l = sum of p_j in 16
//   lanes (lane = j mod 16), folded; o[i] = fma(p_j, v_j[i], o[i]), tokens j ascending.
//   Chunks merge in ascending order: m' = max(m, m_c), a = exp(m - m'), b = exp(m_c - m'), l = fma(l_c, b, l * a),
//   o = fma(o_c, b, o * a). y = o * (1 / l).
// Grid: (heads, tokens). 128 invocations: a token of the chunk each, then values of V.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "formats.glsl"
layout(local_size_x = kAttendWidth) in;
PUSH(FlashAttn);
const uint kChunk = kAttendWidth, kHeld = kMostHeadDim / kAttendWidth;
shared float scores[kChunk], weights[kChunk], sums[16];

uint part_bytes(uint n) { return FORMAT == kF32 ? n * 4 : FORMAT == kF16 ? n * 2 : n / 32 * 34; }

float score(uint64_t k, Floats q) {
  float acc = 0.0;
  for (uint first = 0; first < p.head_dim; first += 256) {
    uint n = min(256, p.head_dim - first);
    float lane[16];
    for (int l = 0; l < 16; ++l) lane[l] = 0.0;
    for (uint i = 0; i < n; i += 16)
      for (uint l = 0; l < 16; ++l)
        if (i + l < n) lane[l] = ZRT_FMA(element(k, first + i + l), q.v[first + i + l], lane[l]);
    acc = acc + fold16(lane);
  }
  float s = acc * p.scale;
  return p.softcap > 0.0 ? p.softcap * exact_tanh(s * rcp(p.softcap)) : s;
}

void main() {
  uint id = gl_LocalInvocationID.x, head = gl_WorkGroupID.x, kv_head = head / (p.n_heads / p.n_kv_heads);
  uint position = uint(Ints(p.positions).v[row()]);
  Words pages = Words(p.pages + uint64_t(Ints(p.slots).v[row()]) * p.width * 4u);
  Floats q = Floats(float_row(p.q, row() * p.n_heads + head, p.head_dim));
  uint k_cell = part_bytes(p.n_kv_heads * p.head_dim), v_cell = part_bytes(p.n_kv_heads * p.v_head_dim);
  uint k_at = part_bytes(kv_head * p.head_dim), v_at = p.v_offset + part_bytes(kv_head * p.v_head_dim);
  uint first_seen = p.window > 0u && position >= p.window ? position - p.window + 1 : 0;
  float total_max = 0.0, total_sum = 0.0, total[kHeld];
  bool is_first = true;
  for (uint at = first_seen / kChunk * kChunk; at <= position; at += kChunk) {
    uint begin = max(at, first_seen) - at, end = min(at + kChunk, position + 1) - at;
    if (id >= begin && id < end) {
      uint j = at + id;
      scores[id] = score(p.cache + uint64_t(pages.v[j / 16]) * p.page_bytes + j % 16 * k_cell + k_at, q);
    }
    barrier();
    float chunk_max = -kInfinity;
    for (uint j = begin; j < end; ++j) chunk_max = scores[j] > chunk_max ? scores[j] : chunk_max;
    if (id >= begin && id < end) weights[id] = exact_exp(scores[id] - chunk_max);
    barrier();
    if (id < 16) {
      float sum = 0.0;
      for (uint j = id; j < end; j += 16)
        if (j >= begin) sum = sum + weights[j];
      sums[id] = sum;
    }
    barrier();
    float lane[16];
    for (int l = 0; l < 16; ++l) lane[l] = sums[l];
    float chunk_sum = fold16(lane);
    float new_max = is_first || chunk_max > total_max ? chunk_max : total_max;
    float a = is_first ? 0.0 : exact_exp(total_max - new_max), b = is_first ? 1.0 : exact_exp(chunk_max - new_max);
    for (uint h = 0; h < kHeld; ++h) {
      uint i = h * kAttendWidth + id;
      if (i >= p.v_head_dim) break;
      float o = 0.0;
      for (uint j = begin; j < end; ++j) {
        uint64_t page = p.cache + uint64_t(pages.v[(at + j) / 16]) * p.page_bytes;
        o = ZRT_FMA(weights[j], element(page + v_at + j % 16 * v_cell, i), o);
      }
      total[h] = is_first ? o : ZRT_FMA(o, b, total[h] * a);
    }
    total_sum = is_first ? chunk_sum : ZRT_FMA(chunk_sum, b, total_sum * a);
    total_max = new_max;
    is_first = false;
    barrier();  // before the next chunk's scores are written
  }
  float r = rcp(total_sum);
  Floats y = Floats(float_row(p.y, row() * p.n_heads + head, p.v_head_dim));
  for (uint h = 0; h < kHeld; ++h) {
    uint i = h * kAttendWidth + id;
    if (i < p.v_head_dim) y.v[i] = total[h] * r;
  }
}
