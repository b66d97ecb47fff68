// FLASH_ATTN and FLASH_ATTN_BATCHED (kernels/cpu/flash_attn.cpp): a workgroup of 128 threads has a token and a head. In
// a chunk of 128 positions a thread has one position's score, then some columns of the output.
#include "kernels/rdna/kv.h"

namespace zinc_rt::rdna {

constexpr uint32_t kChunk = 128, kMostColumns = 4;  // columns of a thread: v_head_dim up to 512

// Rule 4, of a row of the cache and one of floats.
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

struct Total {
  float max, sum, o[kMostColumns];
};

ZRT_DEVICE void attend(const OpArgs& args, float* scores) {
  using Operand = operand::FlashAttn;
  const auto c = constants<push::FlashAttn>(args);
  const uint32_t pages_per_slot = dim(args, 0), type = args.symbols[1], t = group(0), head = group(1),
                 kv_head = head / (c.n_heads / c.n_kv_heads), me = thread();
  const auto pos = (uint32_t)buffer<const int32_t>(args, Operand::pos)[t];
  const int32_t* pages = buffer<const int32_t>(args, Operand::page_table) +
                         (uint64_t)buffer<const int32_t>(args, Operand::slot)[t] * pages_per_slot;
  const float* q = buffer<const float>(args, Operand::q) + ((uint64_t)t * c.n_heads + head) * c.head_dim;
  auto *k = buffer<uint8_t>(args, Operand::kv_k), *v = buffer<uint8_t>(args, Operand::kv_v);
  const uint32_t k_cell = cache_bytes(type, c.n_kv_heads * c.head_dim), k_at = cache_bytes(type, kv_head * c.head_dim),
                 v_cell = cache_bytes(type, c.n_kv_heads * c.v_head_dim),
                 v_at = cache_bytes(type, kv_head * c.v_head_dim);
  const uint32_t first_seen = c.window > 0 && pos >= c.window ? pos - c.window + 1 : 0;
  Total total{};
  bool is_first = true;
  for (uint32_t at = first_seen / kChunk * kChunk; at <= pos; at += kChunk) {
    const uint32_t begin = at > first_seen ? at : first_seen, end = at + kChunk <= pos ? at + kChunk : pos + 1,
                   n = end - begin;
    workgroup_barrier();  // the chunk before is done with the scores
    if (me < n) {
      float s = dot(cell(k, pages, begin + me, args.symbols[2], k_cell) + k_at, type, q, c.head_dim) * c.scale;
      if (c.softcap > 0.0f) s = c.softcap * exact::tanh(s * exact::rcp(c.softcap));
      scores[me] = s;
    }
    workgroup_barrier();
    Total chunk{};
    chunk.max = -__builtin_inff();
    for (uint32_t j = 0; j < n; ++j) chunk.max = scores[j] > chunk.max ? scores[j] : chunk.max;
    workgroup_barrier();
    if (me < n) scores[me] = exact::exp(scores[me] - chunk.max);
    workgroup_barrier();
    float lane[16] = {};
    for (uint32_t j = begin / 16 * 16; j < end; j += 16) {
#pragma unroll
      for (uint32_t l = 0; l < 16; ++l)
        if (j + l >= begin && j + l < end) lane[l] = lane[l] + scores[j + l - begin];
    }
#pragma unroll
    for (int width = 8; width > 0; width /= 2)
      for (int l = 0; l < width; ++l) lane[l] = lane[l] + lane[l + width];
    chunk.sum = lane[0];
    for (uint32_t j = 0; j < n; ++j) {
      const uint8_t* row = cell(v, pages, begin + j, args.symbols[3], v_cell) + v_at;
      const float p = scores[j];
#pragma unroll
      for (uint32_t i = 0; i < kMostColumns; ++i)
        if (me + i * kChunk < c.v_head_dim)
          chunk.o[i] = __builtin_fmaf(p, cached(row, type, me + i * kChunk), chunk.o[i]);
    }
    if (is_first) {
      total = chunk;
    } else {
      const float max = chunk.max > total.max ? chunk.max : total.max, a = exact::exp(total.max - max),
                  b = exact::exp(chunk.max - max);
      total.sum = __builtin_fmaf(chunk.sum, b, total.sum * a);
#pragma unroll
      for (uint32_t i = 0; i < kMostColumns; ++i) total.o[i] = __builtin_fmaf(chunk.o[i], b, total.o[i] * a);
      total.max = max;
    }
    is_first = false;
  }
  const float r = exact::rcp(total.sum);
  float* y = buffer<float>(args, Operand::y) + ((uint64_t)t * c.n_heads + head) * c.v_head_dim;
#pragma unroll
  for (uint32_t i = 0; i < kMostColumns; ++i)
    if (me + i * kChunk < c.v_head_dim) y[me + i * kChunk] = total.o[i] * r;
}

}  // namespace zinc_rt::rdna

ZRT_KERNEL(flash_attn, 128) {
  __shared__ float scores[zinc_rt::rdna::kChunk];
  zinc_rt::rdna::attend(args, scores);
}
ZRT_KERNEL(flash_attn_batched, 128) {
  __shared__ float scores[zinc_rt::rdna::kChunk];
  zinc_rt::rdna::attend(args, scores);
}
