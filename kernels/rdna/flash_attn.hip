// Computes attention (attend.h) over KV caches of f32, f16 and q8_0. Such a page holds 16 cells one after another. A
// cell is one token's row of values, of all kv heads.
#include "kernels/rdna/attend.h"
#include "kernels/rdna/kv.h"

namespace zinc_rt::rdna {

// Returns the float dot (rule 4 of docs/arithmetic.md) of n cached values at `row` with n floats.
ZRT_DEVICE float dot(const uint8_t* row, uint32_t type, const float* x, uint32_t n) {
  float acc = 0.0f;
  for (uint32_t first = 0; first < n; first += 256) {
    float lane[16] = {};
    const uint32_t end = n - first < 256 ? n : first + 256;
    for (uint32_t i = first; i < end; i += 16) {
#pragma unroll
      for (uint32_t l = 0; l < 16; ++l)
        if (i + l < end) lane[l] = __builtin_fmaf(cached(row, type, i + l), x[i + l], lane[l]);
    }
#pragma unroll
    for (int width = 8; width > 0; width /= 2)
      for (int l = 0; l < width; ++l) lane[l] = lane[l] + lane[l + width];
    acc = acc + lane[0];
  }
  return acc;
}

// The struct Cells of attend.h. The query and the weights are used as floats, so nothing is prepared.
struct TokenCells {
  struct Shared {};
  const History& history;
  Shared& shared;
  const float* q = nullptr;

  ZRT_MEMBER void read_query(const float* row, float*) { q = row; }
  ZRT_MEMBER float score(uint32_t j) const {
    const auto& c = history.c;
    const uint32_t bytes = cache_bytes(history.type, c.n_kv_heads * c.head_dim),
                   at = cache_bytes(history.type, history.kv_head * c.head_dim);
    return dot(history.k_page(j) + j % 16 * bytes + at, history.type, q, c.head_dim) * c.scale;
  }
  ZRT_MEMBER void prepare_weights(const Span&, float, float*) const {}
  ZRT_MEMBER void weigh(const Span& span, const float* weights, float* o) const {
    const auto& c = history.c;
    const uint32_t bytes = cache_bytes(history.type, c.n_kv_heads * c.v_head_dim),
                   at = cache_bytes(history.type, history.kv_head * c.v_head_dim);
    for (uint32_t j = span.begin; j < span.end; ++j) {
      const uint8_t* row = history.v_page(j) + j % 16 * bytes + at;
      const float p = weights[j - span.at];
#pragma unroll
      for (uint32_t i = 0; i < kMostColumns; ++i)
        if (thread() + i * kChunk < c.v_head_dim)
          o[i] = __builtin_fmaf(p, cached(row, history.type, thread() + i * kChunk), o[i]);
    }
  }
};

}  // namespace zinc_rt::rdna

ZRT_ATTEND(flash_attn, TokenCells)
