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

constexpr std::uint32_t kChunk = 128;

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

// One chunk [begin, end) of absolute positions for one head.
void attend_chunk(const AttendArgs& args, std::uint32_t head, std::uint32_t begin, std::uint32_t end, float* wide,
                  Head& out) {
  const auto& c = args.shape;
  const std::uint32_t kv_head = head / (c.n_heads / c.n_kv_heads);
  const QuantFormat& f32 = *quant_format(DType::kF32);
  const float* q = args.q + std::uint64_t{head} * c.head_dim;
  float scores[kChunk];
  float lanes[16] = {};
  out.max = -__builtin_inff();
  for (std::uint32_t j = begin; j < end; ++j) {
    const auto* cell = kv_cell(const_cast<void*>(args.kv_k), args.pages, j, args.k_pitch,
                               row_bytes(args.kv, std::uint64_t{c.n_kv_heads} * c.head_dim));
    float s = f32.dot(widen(cell, args.kv, kv_head, c.head_dim, wide), q, c.head_dim) * c.scale;
    if (c.softcap > 0.0f) s = c.softcap * exact::tanh(s * exact::rcp(c.softcap));
    scores[j - begin] = s;
    out.max = s > out.max ? s : out.max;
  }
  std::fill_n(out.o, c.v_head_dim, 0.0f);
  for (std::uint32_t j = begin; j < end; ++j) {
    const float p = exact::exp(scores[j - begin] - out.max);
    lanes[j % 16] = lanes[j % 16] + p;
    const auto* cell = kv_cell(const_cast<void*>(args.kv_v), args.pages, j, args.v_pitch,
                               row_bytes(args.kv, std::uint64_t{c.n_kv_heads} * c.v_head_dim));
    add_scaled(p, widen(cell, args.kv, kv_head, c.v_head_dim, wide), out.o, c.v_head_dim);
  }
  out.sum = fold16(lanes);
}

}  // namespace

std::uint64_t attend_scratch_floats(const push::FlashAttn& shape) {
  return std::uint64_t{2} * shape.v_head_dim + std::max(shape.head_dim, shape.v_head_dim);
}

void attend(const AttendArgs& args, std::uint32_t h_begin, std::uint32_t h_end) {
  const auto& c = args.shape;
  float* wide = args.scratch + 2 * c.v_head_dim;
  const std::uint32_t first = c.window > 0 && args.pos >= c.window ? args.pos - c.window + 1 : 0;
  for (std::uint32_t head = h_begin; head < h_end; ++head) {
    Head total{0, 0, args.scratch}, chunk{0, 0, args.scratch + c.v_head_dim};
    bool is_first = true;
    for (std::uint32_t at = first / kChunk * kChunk; at <= args.pos; at += kChunk) {
      attend_chunk(args, head, std::max(at, first), std::min(at + kChunk, args.pos + 1), wide,
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
    float* y = args.y + std::uint64_t{head} * c.v_head_dim;
    for (std::uint32_t i = 0; i < c.v_head_dim; ++i) y[i] = total.o[i] * r;
  }
}

namespace {

void run(const CpuArgs& args) {
  const auto& c = args.constants<push::FlashAttn>();
  const std::uint32_t t = args.wg[0];
  const auto slot = args.buffer<const std::int32_t>(4)[t];
  const AttendArgs one{c,
                       args.buffer<const float>(0) + std::uint64_t{t} * c.n_heads * c.head_dim,
                       args.buffers[1],
                       args.buffers[2],
                       static_cast<DType>(args.symbols[1]),
                       args.symbols[2],
                       args.symbols[3],
                       args.buffer<const std::int32_t>(5) + static_cast<std::uint64_t>(slot) * args.dim(0),
                       static_cast<std::uint32_t>(args.buffer<const std::int32_t>(3)[t]),
                       args.buffer<float>(6) + std::uint64_t{t} * c.n_heads * c.v_head_dim,
                       reinterpret_cast<float*>(args.lds)};
  const std::uint32_t group = c.n_heads / c.n_kv_heads;
  attend(one, args.wg[1] * group, (args.wg[1] + 1) * group);
}

std::uint64_t lds(const std::uint32_t* s) {
  return (std::uint64_t{3} * s[5] + s[4]) * 4;
}

}  // namespace

extern const CpuKernel kCpuKernel_flash_attn;
const CpuKernel kCpuKernel_flash_attn{
    "FLASH_ATTN",
    run,
    {"dim:m", "dtype:kv_k", "pitch:kv_k", "pitch:kv_v", "attr:head_dim", "attr:v_head_dim"},
    {{"n"}, {"n_kv_heads"}},
    KeyTypes::kKv,
    lds};

}  // namespace zinc_rt::cpu
