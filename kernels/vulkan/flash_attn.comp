// Computes FLASH_ATTN (attend.glsl) over caches of f32, f16 and q8_0. A page of these holds 16 cells, one token's row
// of values each (kv_cells.glsl writes them); FORMAT is their type.
// Order of sums: s_j = dot(q, k_j) * scale by the float dot (rule 4); o[i] = fma(p_j, v_j[i], o[i]) for tokens j
// ascending.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kAttendWidth) in;
#include "attend.glsl"
#include "formats.glsl"

uint part_bytes(uint n) { return FORMAT == kF32 ? n * 4 : FORMAT == kF16 ? n * 2 : n / 32 * 34; }

uint64_t query;
void read_query(uint64_t q) { query = q; }

float score(History history, uint j) {
  uint64_t k = page_of(history, j) + j % 16 * part_bytes(p.n_kv_heads * p.head_dim) +
               part_bytes(history.kv_head * p.head_dim);
  Floats q = Floats(query);
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
  return acc * p.scale;
}

void prepare_weights(History history, Span span) {}

float weighed(History history, Span span, uint i) {
  uint cell = part_bytes(p.n_kv_heads * p.v_head_dim), at = p.v_offset + part_bytes(history.kv_head * p.v_head_dim);
  float o = 0.0;
  for (uint j = span.begin; j < span.end; ++j)
    o = ZRT_FMA(weights[j], element(page_of(history, span.at + j) + at + j % 16 * cell, i), o);
  return o;
}
