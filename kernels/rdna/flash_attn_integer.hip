// Computes attention (attend.h) over KV caches of 16-bit integers (type i16, kernels/common/kv_integer.h). The query,
// and the weights of a chunk, become codes of two digits (codes.h), high and low. Products of these with the codes of K
// and V are exact integers, so their sums have no order.
// The dot instruction multiplies four pairs of bytes. A code of K or V is therefore split into a signed high byte and
// an unsigned low byte: code = 256 * high + low. Unlike a digit, the low byte has no sign.
#include "kernels/rdna/attend.h"
#include "kernels/rdna/codes.h"

namespace zinc_rt::rdna {

// Exact sums of products of cached codes with digits.
struct CodeSums {
  int32_t high_high = 0, low_high = 0, high_low = 0, low_low = 0;  // high_low: high byte of the code, low digit

  // Adds the products of four codes with their digits. `two` and `next` have two codes each; `high` and `low` have the
  // four high and the four low digits.
  ZRT_MEMBER void add(uint32_t two, uint32_t next, uint32_t high, uint32_t low) {
    const auto upper = (int)__builtin_amdgcn_perm(next, two, 0x07050301u),
               lower = (int)__builtin_amdgcn_perm(next, two, 0x06040200u);
    high_high = __builtin_amdgcn_sudot4(true, upper, true, (int)high, high_high, false);
    low_high = __builtin_amdgcn_sudot4(false, lower, true, (int)high, low_high, false);
    high_low = __builtin_amdgcn_sudot4(true, upper, true, (int)low, high_low, false);
    low_low = __builtin_amdgcn_sudot4(false, lower, true, (int)low, low_low, false);
  }
  // Returns fma(A, 256, B), where A and B are the sums of codes times high digits and of codes times low digits.
  ZRT_MEMBER float joined() const {
    const auto a = (int32_t)(((uint32_t)high_high << 8) + (uint32_t)low_high),
               b = (int32_t)(((uint32_t)high_low << 8) + (uint32_t)low_low);
    return __builtin_fmaf((float)a, 256.0f, (float)b);
  }
};

// The struct Cells of attend.h. LDS holds the digits of the query and of the chunk's weights.
struct IntegerCells {
  struct Shared {
    alignas(4) int8_t q_high[kv_integer::kMaxHead], q_low[kv_integer::kMaxHead];
    alignas(4) int8_t p_high[kChunk], p_low[kChunk];
  };
  const History& history;
  Shared& shared;
  float score_scale = 0.0f, weight_scale = 0.0f;

  ZRT_DEVICE uint32_t word(const void* p, uint32_t i) { return ((const uint32_t*)p)[i]; }
  // Returns the scale of one token's codes. part: the K or the V of one layer in a page, with heads of head_dim values.
  ZRT_MEMBER float scale_of(const uint8_t* part, uint32_t token, uint32_t head_dim) const {
    const uint8_t* scales = part + kv_integer::scales_at(history.kv_head, history.c.n_kv_heads, head_dim);
    return bf16_to_f32(((const uint16_t*)scales)[token]);
  }

  ZRT_MEMBER void read_query(const float* q, float* of_waves) {
    const uint32_t n = history.c.head_dim;
    float amax = 0.0f;
    for (uint32_t i = thread(); i < n; i += kChunk) amax = magnitude(q[i]) > amax ? magnitude(q[i]) : amax;
    const CodeScale scale = code_scale(largest_of_group(amax, 0.0f, of_waves));
    for (uint32_t i = thread(); i < n; i += kChunk) {
      const int32_t code = code_of(q[i], scale);
      shared.q_high[i] = (int8_t)digits::high_digit(code);
      shared.q_low[i] = (int8_t)code;
    }
    score_scale = history.c.scale * scale.d;
    workgroup_barrier();
  }
  ZRT_MEMBER float score(uint32_t j) const {
    const uint32_t n = history.c.head_dim, token = j % 16;
    const uint8_t* part = history.k_page(j);
    const uint8_t* codes = part + kv_integer::codes_at(history.kv_head, n) + kv_integer::key_at(token, 0);
    CodeSums sums;
    for (uint32_t i = 0; i < n; i += 4, codes += 4 * kv_integer::kPageTokens * 2)
      sums.add(word(codes, 0), word(codes, kv_integer::kPageTokens), word(shared.q_high, i / 4),
               word(shared.q_low, i / 4));
    return sums.joined() * scale_of(part, token, n) * score_scale;
  }
  // Makes digits of the chunk's weights, each multiplied by the scale of its token's V. p: the thread's weight, 0 if
  // the token does not attend to the thread's position.
  ZRT_MEMBER void prepare_weights(const Span& span, float p, float* of_waves) {
    const uint32_t j = span.at + thread();
    float w = 0.0f;
    if (j >= span.begin && j < span.end) w = p * scale_of(history.v_page(j), j % 16, history.c.v_head_dim);
    const CodeScale scale = code_scale(largest_of_group(magnitude(w), 0.0f, of_waves));
    const int32_t code = code_of(w, scale);
    shared.p_high[thread()] = (int8_t)digits::high_digit(code);
    shared.p_low[thread()] = (int8_t)code;
    weight_scale = scale.d;
    workgroup_barrier();
  }
  ZRT_MEMBER void weigh(const Span& span, const float*, float* o) const {
    const uint32_t n = history.c.v_head_dim;
    CodeSums sums[kMostColumns];
    for (uint32_t j = span.begin / 4 * 4; j < span.end; j += 4) {
      const uint8_t* codes =
          history.v_page(j) + kv_integer::codes_at(history.kv_head, n) + kv_integer::value_at(j % 16, 0, n);
      const uint32_t high = word(shared.p_high, (j - span.at) / 4), low = word(shared.p_low, (j - span.at) / 4);
#pragma unroll
      for (uint32_t i = 0; i < kMostColumns; ++i) {
        const uint32_t column = thread() + i * kChunk;
        if (column < n) sums[i].add(word(codes, column), word(codes, n + column), high, low);
      }
    }
#pragma unroll
    for (uint32_t i = 0; i < kMostColumns; ++i) o[i] = sums[i].joined() * weight_scale;
  }
};

}  // namespace zinc_rt::rdna

ZRT_ATTEND(flash_attn_integer, IntegerCells)
