// Computes FLASH_ATTN (attend.glsl) over caches of 16-bit integers (integer_cells.glsl). A row x of floats becomes
// codes of two digits with one scale d_x, by the rule of QUANTIZE: amax = max |x|, d_x = amax / 32639, code = round(x *
// (32639 / amax)) = 256 * high + low. If amax is below 2^-100, all codes are 0. A NaN, an infinity, or an amax above
// 2^120 makes d_x NaN. Two kinds of rows become codes: q, and the weights p_j of a chunk's tokens, each times the scale
// of its token's V.
// A and B are the sums of the cached codes times the high and the low digits; they are exact in 32 bits in any order.
//   s_j = (fma(A, 256, B) * d_k) * (scale * d_q), with sums over the values of a head
//   o[i] = fma(A, 256, B) * d_p, with sums over the chunk's tokens that the row sees; the digits of other tokens are 0
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kAttendWidth) in;
#include "attend.glsl"
#include "integer_digits.glsl"

shared uint q_high[kMostHeadDim / 4], q_low[kMostHeadDim / 4], p_high[kChunk / 4], p_low[kChunk / 4];
float score_scale, weight_scale;
ivec2 q_sums;  // the sums of q's high digits and of its low ones

void read_query(uint64_t address) {
  uint id = gl_LocalInvocationID.x;
  bool has_part = 4 * id < p.head_dim;
  vec4 x = vec4(0.0);
  if (has_part)
    for (uint i = 0; i < 4; ++i) x[i] = Floats(address).v[4 * id + i];
  float amax = 0.0;
  for (uint i = 0; i < 4; ++i) amax = max(amax, magnitude(x[i]));
  Scaled scaled = scale_of(largest(amax, 0.0));
  uvec2 digits = digits_of(x, scaled.inverse);
  if (has_part) {
    q_high[id] = digits.x;
    q_low[id] = digits.y;
  }
  score_scale = p.scale * scaled.d;
  barrier();
  q_sums = ivec2(0);
  for (uint g = 0; g < p.head_dim / 4; ++g) q_sums += sum_of_digits(q_high[g], q_low[g]);
}

float score(History history, uint j) {
  uint64_t page = page_of(history, j);
  Words codes = Words(page + codes_at(history.kv_head, p.head_dim));
  uint token = j % 16;
  ivec4 sums = ivec4(0);
  // Codes of sixteen values are loaded before the first are used, so that the loads overlap.
  for (uint first = 0; first < p.head_dim / 4; first += 4) {
    uvec4 two, next_two;
    for (uint i = 0; i < 4; ++i) {
      two[i] = codes.v[32 * (first + i) + token];
      next_two[i] = codes.v[32 * (first + i) + 16 + token];
    }
    for (uint i = 0; i < 4; ++i) add_codes(two[i], next_two[i], q_high[first + i], q_low[first + i], sums);
  }
  float d = bf16_to_f32(uint(Halves(page + scales_at(history.kv_head, p.n_kv_heads, p.head_dim)).v[token]));
  return joined(sums, q_sums) * d * score_scale;
}

void prepare_weights(History history, Span span) {
  uint id = gl_LocalInvocationID.x;
  float w = 0.0;
  if (id >= span.begin && id < span.end) {
    uint64_t scales = page_of(history, span.at + id) + p.v_offset +
                      scales_at(history.kv_head, p.n_kv_heads, p.v_head_dim);
    w = weights[id] * bf16_to_f32(uint(Halves(scales).v[id % 16]));
  }
  weights[id] = w;
  Scaled scaled = scale_of(largest(magnitude(w), 0.0));
  if (id < kChunk / 4) {
    uint i = 4 * id;
    uvec2 digits = digits_of(vec4(weights[i], weights[i + 1], weights[i + 2], weights[i + 3]), scaled.inverse);
    p_high[id] = digits.x;
    p_low[id] = digits.y;
  }
  weight_scale = scaled.d;
  barrier();
}

float weighed(History history, Span span, uint i) {
  ivec4 sums = ivec4(0);
  ivec2 digit_sums = ivec2(0);
  // The codes of a page's 16 tokens are loaded before the first are used, so that the loads overlap. The digits of
  // tokens that the row does not see are 0.
  for (uint first = span.begin / 16 * 4; 4 * first < span.end; first += 4) {
    uint64_t page = page_of(history, span.at + 4 * first);
    Words codes = Words(page + p.v_offset + codes_at(history.kv_head, p.v_head_dim));
    uvec4 two, next_two;
    for (uint n = 0; n < 4; ++n) {
      two[n] = codes.v[2 * n * p.v_head_dim + i];
      next_two[n] = codes.v[(2 * n + 1) * p.v_head_dim + i];
    }
    for (uint n = 0; n < 4; ++n) {
      add_codes(two[n], next_two[n], p_high[first + n], p_low[first + n], sums);
      digit_sums += sum_of_digits(p_high[first + n], p_low[first + n]);
    }
  }
  return joined(sums, digit_sums) * weight_scale;
}
