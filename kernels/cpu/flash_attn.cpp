// FLASH_ATTN: causal attention of one query token a slot over its paged KV history, grouped query heads (head h reads
// kv head h / (n_heads / n_kv_heads)); with window > 0 token i sees j with i - j < window. softcap > 0: s = cap *
// tanh(s / cap). Shapes: q [n, n_heads * head_dim], kv_k [pages, 16, n_kv_heads * head_dim], kv_v [pages, 16,
// n_kv_heads * v_head_dim], y [n, n_heads * v_head_dim]. Order (rule 5): the history is cut at absolute positions into
// chunks of 128. In a chunk: s_j = dot(q, k_j) * scale by the float dot; their maximum; p_j = exp(s_j - max); l = sum
// of p in 16 lanes (lane = j mod 16), folded; o[i] = fma(p_j, v_j[i], o[i]) in token order. Chunks merge ascending: m'
// = max(m, m_c), a = exp(m - m'), b = exp(m_c - m'), l = fma(l_c, b, l a), o = fma(o_c, b, o a). y = o * (1 / l).
// Masked tokens are skipped, never added. K and V of any cache type are widened to float first.
#include <algorithm>

#include "kernels/common/fold.h"
#include "kernels/common/multiversion.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/quant.h"

namespace zinc_rt::cpu {
namespace {

constexpr std::uint32_t kChunk = kAttendChunk;

ZRT_MULTIVERSION void add_scaled(float p, const float* v, float* o, std::uint32_t n) {
  for (std::uint32_t i = 0; i < n; ++i) o[i] = __builtin_fmaf(p, v[i], o[i]);
}

struct Head {
  float max, sum;
  float* o;  // v_head_dim
};

// A token's K or V of one kv head as floats: where it lies when it is float already, else in `wide`.
const float* widen(const std::byte* cell, DType kv, std::uint32_t head, std::uint32_t dim, float* wide) {
  const std::byte* at = cell + row_bytes(kv, std::uint64_t{head} * dim);
  if (kv == DType::kF32) return reinterpret_cast<const float*>(at);
  quant_format(kv)->dequantize_row(at, wide, dim);
  return wide;
}

// One query token of a tile.
struct Query {
  const AttendTile& tile;
  const float* q;  // n_heads * head_dim
  const std::int32_t* pages;
  std::uint32_t pos;
};

// One chunk [begin, end) of absolute positions for one head.
void attend_chunk(const Query& query, std::uint32_t head, std::uint32_t begin, std::uint32_t end, float* wide,
                  Head& out) {
  const auto& tile = query.tile;
  const auto& c = tile.shape;
  const QuantFormat& f32 = *quant_format(DType::kF32);
  const float* q = query.q + std::uint64_t{head} * c.head_dim;
  float scores[kChunk];
  float lanes[16] = {};
  out.max = -__builtin_inff();
  for (std::uint32_t j = begin; j < end; ++j) {
    const auto* cell = kv_cell(const_cast<void*>(tile.kv_k), query.pages, j, tile.k_pitch,
                               row_bytes(tile.kv, std::uint64_t{c.n_kv_heads} * c.head_dim));
    float s = f32.dot(widen(cell, tile.kv, tile.kv_head, c.head_dim, wide), q, c.head_dim) * c.scale;
    if (c.softcap > 0.0f) s = c.softcap * exact::tanh(s * exact::rcp(c.softcap));
    scores[j - begin] = s;
    out.max = s > out.max ? s : out.max;
  }
  std::fill_n(out.o, c.v_head_dim, 0.0f);
  for (std::uint32_t j = begin; j < end; ++j) {
    const float p = exact::exp(scores[j - begin] - out.max);
    lanes[j % 16] = lanes[j % 16] + p;
    const auto* cell = kv_cell(const_cast<void*>(tile.kv_v), query.pages, j, tile.v_pitch,
                               row_bytes(tile.kv, std::uint64_t{c.n_kv_heads} * c.v_head_dim));
    add_scaled(p, widen(cell, tile.kv, tile.kv_head, c.v_head_dim, wide), out.o, c.v_head_dim);
  }
  out.sum = fold16(lanes);
}

void attend_head(const Query& query, std::uint32_t head, float* y) {
  const auto& c = query.tile.shape;
  float* scratch = query.tile.scratch;
  float* wide = scratch + 2 * c.v_head_dim;
  const std::uint32_t first = c.window > 0 && query.pos >= c.window ? query.pos - c.window + 1 : 0;
  Head total{0, 0, scratch}, chunk{0, 0, scratch + c.v_head_dim};
  bool is_first = true;
  for (std::uint32_t at = first / kChunk * kChunk; at <= query.pos; at += kChunk) {
    attend_chunk(query, head, std::max(at, first), std::min(at + kChunk, query.pos + 1), wide,
                 is_first ? total : chunk);
    if (!is_first) {
      const float max = chunk.max > total.max ? chunk.max : total.max;
      const float a = exact::exp(total.max - max), b = exact::exp(chunk.max - max);
      total.sum = __builtin_fmaf(chunk.sum, b, total.sum * a);
      for (std::uint32_t i = 0; i < c.v_head_dim; ++i) total.o[i] = __builtin_fmaf(chunk.o[i], b, total.o[i] * a);
      total.max = max;
    }
    is_first = false;
  }
  const float r = exact::rcp(total.sum);
  for (std::uint32_t i = 0; i < c.v_head_dim; ++i) y[i] = total.o[i] * r;
}

}  // namespace

void attend(const AttendTile& tile) {
  const auto& c = tile.shape;
  const std::uint32_t group = c.n_heads / c.n_kv_heads;
  for (std::uint32_t t = 0; t < tile.n; ++t) {
    const Query query{tile, tile.q + std::uint64_t{t} * c.n_heads * c.head_dim,
                      tile.page_table + static_cast<std::int64_t>(tile.slot[t]) * tile.pages_per_slot,
                      static_cast<std::uint32_t>(tile.pos[t])};
    for (std::uint32_t head = tile.kv_head * group; head < (tile.kv_head + 1) * group; ++head)
      attend_head(query, head, tile.y + (std::uint64_t{t} * c.n_heads + head) * c.v_head_dim);
  }
}

void run_attend(const CpuArgs& args, std::uint32_t tile) {
  const auto& c = args.constants<push::FlashAttn>();
  const std::uint32_t begin = args.wg[0] * tile;
  const AttendTile work{c,
                        args.buffer<const float>(0) + std::uint64_t{begin} * c.n_heads * c.head_dim,
                        args.buffers[1],
                        args.buffers[2],
                        static_cast<DType>(args.symbols[1]),
                        args.symbols[2],
                        args.symbols[3],
                        args.buffer<const std::int32_t>(3) + begin,
                        args.buffer<const std::int32_t>(4) + begin,
                        args.buffer<const std::int32_t>(5),
                        args.dim(0),
                        std::min(args.n_tokens - begin, tile),
                        args.wg[1],
                        args.buffer<float>(6) + std::uint64_t{begin} * c.n_heads * c.v_head_dim,
                        reinterpret_cast<float*>(args.lds)};
  if (args.set != nullptr && args.set->attend != nullptr)
    args.set->attend(work);
  else
    attend(work);
}

extern const CpuKernel kCpuKernel_flash_attn;
const CpuKernel kCpuKernel_flash_attn{
    "FLASH_ATTN",
    [](const CpuArgs& args) { run_attend(args, 1); },
    {"dim:m", "dtype:kv_k", "pitch:kv_k", "pitch:kv_v", "attr:head_dim", "attr:v_head_dim"},
    {{"n"}, {"n_kv_heads"}},
    KeyTypes::kKv,
    [](const std::uint32_t* s) { return attend_scratch_floats(s[4], s[5]) * 4; }};

}  // namespace zinc_rt::cpu
