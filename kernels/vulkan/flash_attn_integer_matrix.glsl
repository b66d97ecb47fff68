// Computes FLASH_ATTN of prompts over caches of 16-bit integers by matrices of int8 (matrices.glsl). A workgroup
// computes a tile of rows, which are tokens and heads that share K and V (attend_tile.glsl). Formulas and order are
// those of flash_attn_integer.comp.
// The codes of K and V become two signed digits, as those of q and of the weights are. So a sum of products of codes is
// four sums of products of digits: A = 256 * high_high + low_high and B = 256 * high_low + low_low. The first word of
// these names is the digit of K or V, the second that of q or of a weight.
// For each chunk of 128 tokens:
//   1. score(): K passes through the workgroup's memory in parts of 64 tokens and STEP values, each read once for all
//   rows. The digits of q stay there. A subgroup computes the scores of 16 tokens and 16 rows at a time.
//   2. weigh(): eight invocations per row replace the row's scores by the digits of its weights.
//   3. main(): V passes through the workgroup's memory in parts of 128 values and STEP / 2 tokens. A subgroup computes
//   the sums of 16 values for all rows. Its invocations keep the totals of the chunks as floats.
// In a matrix of sums, rows are tokens or values, and columns are rows of the tile. The workgroup has memory for ROWS
// rows of the tile, 16 or 32.
// A word of digits of V has four tokens: 2 l and 2 l + 1 of one page and of the next. Words of weights have the same,
// because the l-th of a row's eight invocations holds these tokens.
// Included after PUSH and exact_math.glsl.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
layout(constant_id = 0) const uint HEADS = 1;
layout(constant_id = 1) const uint TOKENS = 1;
layout(constant_id = 2) const uint ROWS = 16;
layout(constant_id = 3) const uint STEP = 64;
layout(constant_id = 4) const uint Q_WORDS = 8;  // words of digits per row of q: whole matrices, padded with 0
layout(constant_id = 5) const uint HELD = 1;     // the values of a head of V over 128, rounded up
#include "attend_tile.glsl"
#include "integer_digits.glsl"

// Rows of digits have four words more than they need, so that neighbouring rows lie in different banks.
const uint kQPitch = Q_WORDS + 4, kQLow = ROWS * kQPitch, kScores = 2 * kQLow, kScorePitch = kChunk + 4;
const uint kWeightsLow = 36;  // the low digits of a row's weights follow the high ones
const uint kStage = kScores + ROWS * kScorePitch, kFacts = kStage + 1024 + 32 * STEP, kScales = kFacts + 4 * ROWS;
shared uvec4 tile[(kScales + 2 * kChunk + 3) / 4];
#include "matrices.glsl"
const uint kPartTokens = 64, kKeyPitch = STEP / 4 + 4, kKeyLow = kPartTokens * kKeyPitch;
const uint kPartValues = 128, kValueTokens = STEP / 2, kValuePitch = kValueTokens / 4 + 4,
           kValueLow = kPartValues * kValuePitch;
const uint kTurns = STEP / 16;                      // words of high digits of a part that each invocation makes
// Where floats lie in memory. Per row: the scale of scores, the scale of weights, and the factors of the totals and of
// the chunk in a merge. Per token of the chunk: the scales of K and V. kLastFactor, 1 / l, is written when the scale of
// scores is no longer needed.
const uint kScoreScale = kFacts, kWeightScale = kFacts + ROWS, kOldFactor = kFacts + 2 * ROWS,
           kNewFactor = kFacts + 3 * ROWS, kKeyScale = kScales, kValueScale = kScales + kChunk;
const uint kLastFactor = kScoreScale;

float float_at(uint at) { return uintBitsToFloat(WORD(at)); }
void put(uint at, float x) { WORD(at) = floatBitsToUint(x); }
uint subgroup_number() { return gl_LocalInvocationID.x / 32; }
uint lane() { return gl_LocalInvocationID.x % 32; }
// Eight neighbouring invocations share a row: eighth() is the invocation's number among them, own_row() the row.
uint eighth() { return gl_LocalInvocationID.x % 8; }
uint own_row() { return gl_LocalInvocationID.x / 8; }  // may be past the tile's last row
// Returns the largest of the eight numbers of neighbouring invocations, to all of them. REQUIRES: none is a NaN.
float largest_of_eight(float most) {
  for (uint mask = 4; mask > 0; mask /= 2) {
    float other = subgroupShuffleXor(most, mask);
    most = other > most ? other : most;
  }
  return most;
}
// Whether any row sees one of the n tokens from j on. Pages without such a token are not read, because they may not
// exist.
bool is_seen(Tile own, uint j, uint n) { return j <= last_seen(own) && j + n > first_seen(own, 0); }

// Converts the tile's rows of q to digits. Eight invocations share a row.
void read_query(Tile own) {
  uint r = own_row(), l = eighth();
  bool is_row = r < ROWS && is_there(own, r);
  Floats q = floats_of(own, p.q, r, p.head_dim);
  float amax = 0.0;
  for (uint i = l; is_row && i < p.head_dim; i += 8) amax = max(amax, magnitude(q.v[i]));
  Scaled scaled = scale_of(largest_of_eight(amax));
  if (r >= ROWS) return;
  for (uint w = l; w < Q_WORDS; w += 8) {
    uvec2 digits = uvec2(0u);
    if (is_row && 4 * w < p.head_dim)
      digits = digits_of(vec4(q.v[4 * w], q.v[4 * w + 1], q.v[4 * w + 2], q.v[4 * w + 3]), scaled.inverse);
    WORD(r * kQPitch + w) = digits.x;
    WORD(kQLow + r * kQPitch + w) = digits.y;
  }
  if (l == 0) put(kScoreScale + r, p.scale * scaled.d);
}
// Reads the scales of the chunk's keys and values.
void read_scales(Tile own, uint at) {
  uint id = gl_LocalInvocationID.x, j = at + id;
  if (id >= kChunk || !is_seen(own, j / 16 * 16, 16)) return;
  uint64_t page = page_of(own, j);
  Halves keys = Halves(page + scales_at(own.kv_head, p.n_kv_heads, p.head_dim));
  Halves values = Halves(page + p.v_offset + scales_at(own.kv_head, p.n_kv_heads, p.v_head_dim));
  put(kKeyScale + id, bf16_to_f32(uint(keys.v[j % 16])));
  put(kValueScale + id, bf16_to_f32(uint(values.v[j % 16])));
}

// What an invocation reads of a part of K or V: kTurns times two words of codes. It is read while the part before is
// multiplied; then its digits go to the workgroup's memory. Codes that no row sees, or past the end of a head, may be
// anything: they are multiplied by digits of 0, or their scores are not used.
struct Part {
  uint two[kTurns], next_two[kTurns];
};
// Parts of K are stored as rows of tokens. An invocation makes every fourth word of one token.
uint own_token() { return 8 * subgroup_number() + lane() % 8; }
void read_keys(Tile own, uint first, uint first_word, out Part part) {
  uint j = first + own_token();
  bool has_page = is_seen(own, j / 16 * 16, 16);
  Words codes = Words((has_page ? page_of(own, j) : 0) + codes_at(own.kv_head, p.head_dim) + 4 * (j % 16));
  UNROLLED for (uint n = 0; n < kTurns; ++n) {
    uint word = min(first_word + lane() / 8 + 4 * n, p.head_dim / 4 - 1);
    part.two[n] = has_page ? codes.v[32 * word] : 0u;
    part.next_two[n] = has_page ? codes.v[32 * word + 16] : 0u;
  }
}
void put_digits(uint at, uint low, uint two, uint next_two) {
  uvec2 digits = digits_of_codes(two, next_two);
  WORD(at) = digits.x;
  WORD(at + low) = digits.y;
}
void put_keys(Part part) {
  UNROLLED for (uint n = 0; n < kTurns; ++n)
    put_digits(kStage + own_token() * kKeyPitch + lane() / 8 + 4 * n, kKeyLow, part.two[n], part.next_two[n]);
}
// Parts of V are stored as rows of values. In each turn an invocation makes one word: one of 64 values, of two tokens
// of a page and of the next page.
void read_values(Tile own, uint first, uint first_value, out Part part) {
  uint64_t codes = p.v_offset + codes_at(own.kv_head, p.v_head_dim);
  UNROLLED for (uint n = 0; n < kTurns; ++n) {
    uint j = first + n / 4 * 32, i = min(first_value + own_token() + n % 2 * 64, p.v_head_dim - 1);
    uint at = (lane() / 8 + n / 2 % 2 * 4) * p.v_head_dim + i;
    part.two[n] = is_seen(own, j, 16) ? Words(page_of(own, j) + codes).v[at] : 0u;
    part.next_two[n] = is_seen(own, j + 16, 16) ? Words(page_of(own, j + 16) + codes).v[at] : 0u;
  }
}
void put_values(Part part) {
  UNROLLED for (uint n = 0; n < kTurns; ++n)
    put_digits(kStage + (own_token() + n % 2 * 64) * kValuePitch + lane() / 8 + n / 2 * 4, kValueLow, part.two[n],
               part.next_two[n]);
}

// Computes the chunk's scores of all rows. Each subgroup computes 16 tokens and 16 rows at a time. part: on entry the
// first keys, on return the first values, which are read ahead.
void score(Tile own, uint at, inout Part part) {
  uint first_token = 16 * (subgroup_number() % 4), first_row = 16 * (subgroup_number() / 4);
  uint a_at = kStage + first_token * kKeyPitch, b_at = first_row * kQPitch, sums = kStage + subgroup_number() * kSums;
  bool has_sums = first_row < min(ROWS, own.n_tokens * HEADS);
  read_scales(own, at);
  for (uint first = 0; first < kChunk; first += kPartTokens) {
    bool has_products = has_sums && is_seen(own, at + first, kPartTokens);
    MatrixC high_high = zero_matrix(), low_high = zero_matrix(), high_low = zero_matrix(), low_low = zero_matrix();
    for (uint word = 0; word < Q_WORDS; word += STEP / 4) {
      barrier();
      put_keys(part);
      barrier();
      if (word + STEP / 4 < Q_WORDS)
        read_keys(own, at + first, word + STEP / 4, part);
      else if (first + kPartTokens < kChunk)
        read_keys(own, at + first + kPartTokens, 0, part);
      else
        read_values(own, at, 0, part);
      if (has_products)
        UNROLLED for (uint k = 0; k < STEP / 4; k += 8) {
          if (word + k >= Q_WORDS) break;
          MatrixA high = load_a(a_at + k, kKeyPitch), low = load_a(a_at + kKeyLow + k, kKeyPitch);
          MatrixB q_high = load_b(b_at + word + k, kQPitch), q_low = load_b(b_at + kQLow + word + k, kQPitch);
          high_high = multiply_add(high, q_high, high_high);
          low_high = multiply_add(low, q_high, low_high);
          high_low = multiply_add(high, q_low, high_low);
          low_low = multiply_add(low, q_low, low_low);
        }
    }
    barrier();
    uint scores = kScores + first_row * kScorePitch + first + first_token;
    if (has_products) {
      store_c(scores, plus(times_256(high_high), low_high), kScorePitch);
      store_c(sums, plus(times_256(high_low), low_low), kSumPitch);
    }
    subgroup_barrier();
    float d = float_at(kKeyScale + first + first_token + lane() % 16);
    if (has_products)
      UNROLLED for (uint n = 0; n < 8; ++n) {
        uint r = lane() / 16 + 2 * n, score_at = scores + r * kScorePitch + lane() % 16;
        float s = joined(int(WORD(score_at)), int(WORD(sums + r * kSumPitch + lane() % 16))) * d *
                  float_at(kScoreScale + first_row + r);
        put(score_at, s);
      }
    if (has_products && p.softcap > 0.0)
      [[dont_unroll]] for (uint n = 0; n < 8; ++n) {
        uint score_at = scores + (lane() / 16 + 2 * n) * kScorePitch + lane() % 16;
        put(score_at, p.softcap * exact_tanh(float_at(score_at) * rcp(p.softcap)));
      }
  }
  barrier();
}

// The largest score and the sum of weights of a row so far. The row's eight invocations hold the same.
struct Total {
  float most, sum;
  bool is_first;
};
// Replaces the chunk's scores of the invocation's row by the digits of its weights, and merges the chunk's largest
// score and sum of weights into those of the row.
void weigh(Tile own, uint at, inout Total total) {
  uint r = own_row(), l = eighth(), row_at = kScores + r * kScorePitch;
  bool is_row = r < ROWS && sees_of(own, r, at);
  // The row sees [begin, end) of the chunk's tokens.
  uint begin = is_row ? max(first_seen(own, r / HEADS), at) - at : 1;
  uint end = is_row ? min(own.position + r / HEADS + 1 - at, kChunk) : 0;
  float w[16], most = -kInfinity;
  UNROLLED for (uint i = 0; i < 16; ++i) {
    uint j = i / 2 * 16 + 2 * l + i % 2;
    w[i] = j >= begin && j < end ? float_at(row_at + j) : -kInfinity;
    most = w[i] > most ? w[i] : most;
  }
  most = largest_of_eight(most);
  float amax = 0.0, sums[2] = {0.0, 0.0};
  UNROLLED for (uint i = 0; i < 16; ++i) {
    uint j = i / 2 * 16 + 2 * l + i % 2;
    bool is_token = j >= begin && j < end;
    float e = is_token ? exact_exp(w[i] - most) : 0.0;
    if (is_token) sums[i % 2] = sums[i % 2] + e;
    w[i] = is_token ? e * float_at(kValueScale + j) : 0.0;
    amax = max(amax, magnitude(w[i]));
  }
  // The fold (kernels/common/fold.h); this invocation has the lanes 2 l and 2 l + 1 of the 16.
  for (uint mask = 4; mask > 0; mask /= 2)
    for (uint i = 0; i < 2; ++i) sums[i] = sums[i] + subgroupShuffleXor(sums[i], mask);
  float sum = sums[0] + sums[1];
  Scaled scaled = scale_of(largest_of_eight(amax));
  subgroup_barrier();  // all scores of the row were read, so they may be overwritten
  if (is_row) {
    UNROLLED for (uint i = 0; i < 16; i += 4) {
      uvec2 digits = digits_of(vec4(w[i], w[i + 1], w[i + 2], w[i + 3]), scaled.inverse);
      WORD(row_at + 2 * i + l) = digits.x;
      WORD(row_at + kWeightsLow + 2 * i + l) = digits.y;
    }
    float new_most = total.is_first || most > total.most ? most : total.most;
    float a = total.is_first ? 0.0 : exact_exp(total.most - new_most);
    float b = total.is_first ? 1.0 : exact_exp(most - new_most);
    if (l == 0) {
      put(kWeightScale + r, scaled.d);
      put(kOldFactor + r, total.is_first ? -1.0 : a);
      put(kNewFactor + r, b);
    }
    total = Total(new_most, total.is_first ? sum : ZRT_FMA(sum, b, total.sum * a), false);
  } else if (r < ROWS && l == 0) {
    put(kNewFactor + r, -1.0);  // the row sees nothing of the chunk
  }
  barrier();
}

// A subgroup's matrix of sums has 16 values and 16 rows. Each invocation takes the sums of one value, value_of_lane(),
// and of every other row, row_of_lane(); read_sums() returns them.
uint value_of_lane(uint h) { return h * kPartValues + 16 * subgroup_number() + lane() % 16; }
uint row_of_lane(uint n) { return lane() / 16 + 2 * n; }
void read_sums(uint sums, out int v[8]) {
  subgroup_barrier();
  UNROLLED for (uint n = 0; n < 8; ++n) v[n] = int(WORD(sums + (lane() / 16 + 2 * n) * kSumPitch + lane() % 16));
  subgroup_barrier();
}
// Merges the chunk's o of row r, made of A = a and B = b, into the row's total. weigh() marks the row's first chunk,
// and a chunk that the row does not see, by factors below 0.
float joined_total(uint r, int a, int b, float total) {
  float was = float_at(kOldFactor + r), is = float_at(kNewFactor + r), o = joined(a, b) * float_at(kWeightScale + r);
  if (is < 0.0) return total;
  return was < 0.0 ? o : ZRT_FMA(o, is, total * was);
}

void main() {
  Tile own;
  // The last tokens have the longest histories, so the workgroups that begin first take them.
  if (!find_tile(gl_NumWorkGroups.y - 1 - row(), own)) return;
  read_query(own);
  Total of_row = Total(0.0, 0.0, true);
  float total[HELD * ROWS / 2];
  uint a_at = kStage + 16 * subgroup_number() * kValuePitch, sums = kStage + subgroup_number() * kSums;
  uint b_at = kScores, second_b_at = kScores + 16 * kScorePitch;
  bool has_second = own.n_tokens * HEADS > 16;
  uint first_chunk = first_seen(own, 0) / kChunk * kChunk;
  Part part;
  read_keys(own, first_chunk, 0, part);
  for (uint at = first_chunk; at <= last_seen(own); at += kChunk) {
    score(own, at, part);
    weigh(own, at, of_row);
    UNROLLED for (uint h = 0; h < HELD; ++h) {
      MatrixC high_high = zero_matrix(), low_high = zero_matrix(), high_low = zero_matrix(), low_low = zero_matrix();
      MatrixC second_high_high = zero_matrix(), second_low_high = zero_matrix();
      MatrixC second_high_low = zero_matrix(), second_low_low = zero_matrix();
      bool has_values = h * kPartValues + 16 * subgroup_number() < p.v_head_dim;
      for (uint first = 0; first < kChunk; first += kValueTokens) {
        barrier();
        put_values(part);
        barrier();
        if (first + kValueTokens < kChunk)
          read_values(own, at + first + kValueTokens, h * kPartValues, part);
        else if (h + 1 < HELD)
          read_values(own, at, (h + 1) * kPartValues, part);
        else
          read_keys(own, at + kChunk, 0, part);
        if (has_values && is_seen(own, at + first, kValueTokens))
          UNROLLED for (uint k = 0; k < kValueTokens / 4; k += 8) {
            uint word = first / 4 + k;
            MatrixA high = load_a(a_at + k, kValuePitch), low = load_a(a_at + kValueLow + k, kValuePitch);
            MatrixB w_high = load_b(b_at + word, kScorePitch), w_low = load_b(b_at + kWeightsLow + word, kScorePitch);
            high_high = multiply_add(high, w_high, high_high);
            low_high = multiply_add(low, w_high, low_high);
            high_low = multiply_add(high, w_low, high_low);
            low_low = multiply_add(low, w_low, low_low);
            if (ROWS > 16 && has_second) {
              w_high = load_b(second_b_at + word, kScorePitch);
              w_low = load_b(second_b_at + kWeightsLow + word, kScorePitch);
              second_high_high = multiply_add(high, w_high, second_high_high);
              second_low_high = multiply_add(low, w_high, second_low_high);
              second_high_low = multiply_add(high, w_low, second_high_low);
              second_low_low = multiply_add(low, w_low, second_low_low);
            }
          }
      }
      barrier();
      int a[8], b[8];
      store_c(sums, plus(times_256(high_high), low_high), kSumPitch);
      read_sums(sums, a);
      store_c(sums, plus(times_256(high_low), low_low), kSumPitch);
      read_sums(sums, b);
      UNROLLED for (uint n = 0; n < 8; ++n)
        total[h * ROWS / 2 + n] = joined_total(row_of_lane(n), a[n], b[n], total[h * ROWS / 2 + n]);
      if (ROWS > 16 && has_second) {
        store_c(sums, plus(times_256(second_high_high), second_low_high), kSumPitch);
        read_sums(sums, a);
        store_c(sums, plus(times_256(second_high_low), second_low_low), kSumPitch);
        read_sums(sums, b);
        UNROLLED for (uint n = 0; n < 8; ++n)
          total[h * ROWS / 2 + 8 + n] = joined_total(row_of_lane(8 + n), a[n], b[n], total[h * ROWS / 2 + 8 + n]);
      }
    }
  }
  if (own_row() < ROWS && eighth() == 0) put(kLastFactor + own_row(), rcp(of_row.sum));
  barrier();
  UNROLLED for (uint h = 0; h < HELD; ++h) {
    uint i = value_of_lane(h);
    if (i < p.v_head_dim)
      UNROLLED for (uint n = 0; n < ROWS / 2; ++n) {
        uint r = row_of_lane(n);
        float y = total[h * ROWS / 2 + n] * float_at(kLastFactor + r);
        if (is_there(own, r)) floats_of(own, p.y, r, p.v_head_dim).v[i] = y;
      }
  }
}
