// Computes FLASH_ATTN of prompts over caches of 16-bit integers on devices without cooperative matrices. A workgroup
// computes a tile of rows, which are tokens and heads that share K and V (attend_tile.glsl), so that K and V are read
// once for all of them. Formulas and order are those of flash_attn_integer.comp.
// Each of the 128 invocations computes the scores of one token of a chunk for all rows. Then eight invocations per row
// compute its weights. Then each invocation computes up to HELD values of V for all rows.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kAttendWidth) in;
#include "integer_digits.glsl"
PUSH(FlashAttn);
layout(constant_id = 0) const uint HEADS = 1;
layout(constant_id = 1) const uint HELD = 1;  // the values of a head of V or of K, the larger, over 128, rounded up
const uint TOKENS = kAttendTokens;
#include "attend_tile.glsl"
const uint kRows = HEADS * TOKENS, kLanes = 8, kWords = HELD * kAttendWidth / 8;

// The digits of eight values: the high and the low ones of four values, then those of the next four.
shared uvec4 q_digits[kRows * kWords], p_digits[kRows * kChunk / 8];
shared float scores[kRows * kChunk], value_scales[kChunk], lane_sums[kRows * 16], parts[kAttendWidth];
shared ivec2 q_sums[kRows], p_sums[kRows];
shared float score_scales[kRows], weight_scales[kRows], old_factors[kRows], new_factors[kRows], last_factors[kRows];

// Eight neighbouring invocations share a row: lane() is the invocation's number among them.
uint lane() { return gl_LocalInvocationID.x % kLanes; }
uint own_row() { return gl_LocalInvocationID.x / kLanes; }
// Returns the largest of `least` and the numbers of the row's eight invocations, to these. NaNs are skipped. REQUIRES:
// all invocations of the workgroup call it.
float largest_of_row(float mine, float least) {
  barrier();
  parts[gl_LocalInvocationID.x] = mine;
  barrier();
  float most = least;
  for (uint l = 0; l < kLanes; ++l) {
    float part = parts[own_row() * kLanes + l];
    most = part > most ? part : most;
  }
  return most;
}
// Converts the tile's rows of q to digits. Eight invocations share a row.
void read_queries(Tile tile) {
  uint r = own_row(), n = p.head_dim / 8;
  bool is_row = r < kRows && is_there(tile, r);
  Floats q = floats_of(tile, p.q, r, p.head_dim);
  float amax = 0.0;
  for (uint i = lane(); is_row && i < p.head_dim; i += kLanes) amax = max(amax, magnitude(q.v[i]));
  Scaled scaled = scale_of(largest_of_row(amax, 0.0));
  for (uint w = lane(); is_row && w < n; w += kLanes) {
    vec4 a, b;
    for (uint i = 0; i < 4; ++i) {
      a[i] = q.v[8 * w + i];
      b[i] = q.v[8 * w + 4 + i];
    }
    q_digits[r * kWords + w] = uvec4(digits_of(a, scaled.inverse), digits_of(b, scaled.inverse));
  }
  barrier();
  if (is_row && lane() == 0) {
    score_scales[r] = p.scale * scaled.d;
    ivec2 sum = ivec2(0);
    for (uint w = 0; w < n; ++w) {
      uvec4 q4 = q_digits[r * kWords + w];
      sum += sum_of_digits(q4.x, q4.y) + sum_of_digits(q4.z, q4.w);
    }
    q_sums[r] = sum;
  }
  barrier();
}

// Adds the products of eight codes with the digits of each row, which are words number `word` of the weights or of q.
// codes: the upper and the lower bytes of four codes (integer_digits.glsl), then those of the next four.
void add_eight(Tile tile, uvec4 codes, bool are_weights, uint word, inout ivec4 sums[kRows]) {
  [[unroll]] for (uint t = 0; t < TOKENS; ++t) {
    if (t >= tile.n_tokens) continue;
    [[unroll]] for (uint h = 0; h < HEADS; ++h) {
      uint r = t * HEADS + h;
      uvec4 x = are_weights ? p_digits[r * kChunk / 8 + word] : q_digits[r * kWords + word];
      sums[r] += ivec4(dot4(codes.x, x.x) + dot4(codes.z, x.z), dot4(codes.y, x.x) + dot4(codes.w, x.z),
                       dot4(codes.x, x.y) + dot4(codes.z, x.w), dot4(codes.y, x.y) + dot4(codes.w, x.w));
    }
  }
}
uvec4 bytes_of(uint two, uint next_two, uint more, uint next_more) {
  return uvec4(upper_bytes(two, next_two), lower_bytes(two, next_two), upper_bytes(more, next_more),
               lower_bytes(more, next_more));
}

// Computes the scores of the invocation's token for all rows.
void score(Tile tile, uint at) {
  uint id = gl_LocalInvocationID.x, j = at + id;
  ivec4 sums[kRows];
  [[unroll]] for (uint r = 0; r < kRows; ++r) sums[r] = ivec4(0);
  float d = 0.0;
  if (j >= first_seen(tile, 0) && j <= last_seen(tile)) {
    uint64_t page = page_of(tile, j);
    uint token = j % 16;
    Words codes = Words(page + codes_at(tile.kv_head, p.head_dim));
    for (uint w = 0; w < p.head_dim / 8; ++w) {
      uint k = 64 * w + token;
      uvec4 bytes = bytes_of(codes.v[k], codes.v[k + 16], codes.v[k + 32], codes.v[k + 48]);
      add_eight(tile, bytes, false, w, sums);
    }
    d = bf16_to_f32(uint(Halves(page + scales_at(tile.kv_head, p.n_kv_heads, p.head_dim)).v[token]));
    Halves scales = Halves(page + p.v_offset + scales_at(tile.kv_head, p.n_kv_heads, p.v_head_dim));
    value_scales[id] = bf16_to_f32(uint(scales.v[token]));
  }
  [[unroll]] for (uint r = 0; r < kRows; ++r) {
    float s = joined(sums[r], q_sums[r]) * d * score_scales[r];
    if (p.softcap > 0.0) s = p.softcap * exact_tanh(s * rcp(p.softcap));
    scores[r * kChunk + id] = s;
  }
  barrier();
}

// Computes the chunk's weights of the invocation's row, converts them to digits, and merges the chunk's largest score
// and sum of weights into those of the row.
void weigh(Tile tile, uint at, inout float total_max, inout float total_sum, inout bool is_first) {
  uint r = own_row();
  bool is_row = r < kRows && sees_of(tile, r, at);
  float most = -kInfinity;
  for (uint j = lane(); is_row && j < kChunk; j += kLanes)
    if (sees(tile, r, at + j)) most = scores[r * kChunk + j] > most ? scores[r * kChunk + j] : most;
  most = largest_of_row(most, -kInfinity);
  float sums[2] = {0.0, 0.0}, amax = 0.0;
  for (uint j = lane(); is_row && j < kChunk; j += kLanes) {
    float weight = 0.0;
    if (sees(tile, r, at + j)) {
      float e = exact_exp(scores[r * kChunk + j] - most);
      sums[j / kLanes % 2] = sums[j / kLanes % 2] + e;
      weight = e * value_scales[j];
      amax = max(amax, magnitude(weight));
    }
    scores[r * kChunk + j] = weight;
  }
  if (is_row) {
    lane_sums[r * 16 + lane()] = sums[0];
    lane_sums[r * 16 + kLanes + lane()] = sums[1];
  }
  Scaled scaled = scale_of(largest_of_row(amax, 0.0));
  for (uint w = lane(); is_row && w < kChunk / 8; w += kLanes) {
    uint i = r * kChunk + 8 * w;
    p_digits[r * kChunk / 8 + w] =
        uvec4(digits_of(vec4(scores[i], scores[i + 1], scores[i + 2], scores[i + 3]), scaled.inverse),
              digits_of(vec4(scores[i + 4], scores[i + 5], scores[i + 6], scores[i + 7]), scaled.inverse));
  }
  barrier();
  if (!is_row) {
    if (r < kRows && lane() == 0) new_factors[r] = -1.0;  // the row sees nothing of the chunk
  } else {
    float all[16];
    for (uint l = 0; l < 16; ++l) all[l] = lane_sums[r * 16 + l];
    float sum = fold16(all);
    float new_max = is_first || most > total_max ? most : total_max;
    float a = is_first ? 0.0 : exact_exp(total_max - new_max), b = is_first ? 1.0 : exact_exp(most - new_max);
    total_sum = is_first ? sum : ZRT_FMA(sum, b, total_sum * a);
    total_max = new_max;
    if (lane() == 0) {
      old_factors[r] = is_first ? -1.0 : a;
      new_factors[r] = b;
      weight_scales[r] = scaled.d;
      ivec2 digit_sums = ivec2(0);
      for (uint w = 0; w < kChunk / 8; ++w) {
        uvec4 x = p_digits[r * kChunk / 8 + w];
        digit_sums += sum_of_digits(x.x, x.y) + sum_of_digits(x.z, x.w);
      }
      p_sums[r] = digit_sums;
    }
    is_first = false;
  }
  barrier();
}

void attend(Tile tile) {
  uint id = gl_LocalInvocationID.x, last = last_seen(tile);
  read_queries(tile);
  float total_max = 0.0, total_sum = 0.0, total[HELD * kRows];
  bool is_first = true;
  for (uint at = first_seen(tile, 0) / kChunk * kChunk; at <= last; at += kChunk) {
    score(tile, at);
    weigh(tile, at, total_max, total_sum, is_first);
    uint begin = (max(at, first_seen(tile, 0)) - at) / 8, end = (min(at + kChunk, last + 1) - at + 7) / 8;
    [[unroll]] for (uint h = 0; h < HELD; ++h) {
      uint i = h * kAttendWidth + id;
      if (i < p.v_head_dim) {
        ivec4 sums[kRows];
        [[unroll]] for (uint r = 0; r < kRows; ++r) sums[r] = ivec4(0);
        for (uint w = begin; w < end; ++w) {
          Words codes = Words(page_of(tile, at + 8 * w) + p.v_offset + codes_at(tile.kv_head, p.v_head_dim));
          uint d = p.v_head_dim, v = w % 2 * 4 * d + i;
          uvec4 bytes = bytes_of(codes.v[v], codes.v[v + d], codes.v[v + 2 * d], codes.v[v + 3 * d]);
          add_eight(tile, bytes, true, w, sums);
        }
        [[unroll]] for (uint r = 0; r < kRows; ++r) {
          if (new_factors[r] < 0.0 || !is_there(tile, r)) continue;
          float o = joined(sums[r], p_sums[r]) * weight_scales[r];
          uint at_total = h * kRows + r;
          total[at_total] =
              old_factors[r] < 0.0 ? o : ZRT_FMA(o, new_factors[r], total[at_total] * old_factors[r]);
        }
      }
    }
    barrier();
  }
  if (own_row() < kRows && lane() == 0) last_factors[own_row()] = rcp(total_sum);
  barrier();
  [[unroll]] for (uint r = 0; r < kRows; ++r) {
    if (!is_there(tile, r)) continue;
    Floats y = floats_of(tile, p.y, r, p.v_head_dim);
    [[unroll]] for (uint h = 0; h < HELD; ++h) {
      uint i = h * kAttendWidth + id;
      if (i < p.v_head_dim) y.v[i] = total[h * kRows + r] * last_factors[r];
    }
  }
}

void main() {
  Tile tile;
  if (find_tile(row(), tile)) attend(tile);
}
