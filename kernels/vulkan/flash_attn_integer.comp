// FLASH_ATTN (attend.glsl) over cells of integers (integer_cells.glsl). A row x of floats, q or the chunk's weights times
// the scales of their values, becomes codes of two digits with one scale d_x by the rule of QUANTIZE: d_x = amax / 32639,
// code = round(x * (32639 / amax)) = 256 * high + low. A row with amax below 2^-100 is all 0; a NaN, an infinity, or an
// amax beyond 2^120 makes d_x NaN.
// A and B are the sums of the cells' codes times the high and the low digits, exact in 32 bits in any order.
//   s_j = (fma(A, 256, B) * d_k) * (scale * d_q), sums over a head's values
//   o[i] = fma(A, 256, B) * d_p, sums over the chunk's tokens that the row sees; the others' digits are 0
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kAttendWidth) in;
#include "attend.glsl"
#include "dots.glsl"
#include "half.glsl"
#include "integer_cells.glsl"

// The digits of 4 g..4 g + 3 lie in word g of each, as bytes of 4 g, 4 g + 2, 4 g + 1, 4 g + 3.
shared uint q_high[kMostHeadDim / 4], q_low[kMostHeadDim / 4], p_high[kChunk / 4], p_low[kChunk / 4];
float score_scale, weight_scale;
ivec2 q_sums;  // of q's high digits, and of its low ones

struct Scaled {
  float inverse, d;
};
Scaled scale_of(float amax) {
  if (amax > 1.329227995784916e36) return Scaled(0.0, kNan);
  if (amax < 7.888609052210118e-31) return Scaled(0.0, 0.0);
  return Scaled(exact_div(kMostCode, amax), exact_div(amax, kMostCode));
}
// x: the high digits, y: the low ones. Where the inverse is 0 so are the codes, whatever x is.
uvec2 digits_of(vec4 x, float inverse) {
  uvec2 words = uvec2(0u);
  for (uint i = 0; i < 4; ++i) {
    int code = inverse > 0.0 ? int(round_int(x[i] * inverse)) : 0;
    uint at = 8 * (i / 2 + i % 2 * 2);
    words |= uvec2(uint(code + 128 >> 8 & 255) << at, uint(code & 255) << at);
  }
  return words;
}

// Adds the products of four codes, two in a word, and their digits: high bytes and low bytes times high digits, then both
// times low digits. Low bytes have no sign; they are taken less 128, which joined() makes up for by the sums of digits.
void add_codes(uint two, uint next_two, uint high, uint low, inout ivec4 sums) {
  uint upper = (two >> 8 & 0x00FF00FFu) | (next_two & 0xFF00FF00u);
  uint lower = ((two & 0x00FF00FFu) | (next_two << 8 & 0xFF00FF00u)) ^ 0x80808080u;
  sums += ivec4(dot4(upper, high), dot4(lower, high), dot4(upper, low), dot4(lower, low));
}
ivec2 sum_of_digits(uint high, uint low) { return ivec2(dot4(0x01010101u, high), dot4(0x01010101u, low)); }
float joined(ivec4 sums, ivec2 sum_of_digits) {
  ivec2 ab = 256 * sums.xz + sums.yw + 128 * sum_of_digits;
  return ZRT_FMA(float(ab.x), 256.0, float(ab.y));
}

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
  for (uint g = 0; g < p.head_dim / 4; ++g)
    add_codes(codes.v[32 * g + token], codes.v[32 * g + 16 + token], q_high[g], q_low[g], sums);
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
  for (uint g = span.begin / 4; 4 * g < span.end; ++g) {
    uint64_t page = page_of(history, span.at + 4 * g);
    Words codes = Words(page + p.v_offset + codes_at(history.kv_head, p.v_head_dim));
    uint at = g % 4 * 2 * p.v_head_dim + i;
    add_codes(codes.v[at], codes.v[at + p.v_head_dim], p_high[g], p_low[g], sums);
    digit_sums += sum_of_digits(p_high[g], p_low[g]);
  }
  return joined(sums, digit_sums) * weight_scale;
}
