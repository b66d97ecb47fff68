// FLASH_ATTN: causal attention of one query token a slot over the slot's paged K and V. Query heads are grouped: head h
// reads kv head h / (n_heads / n_kv_heads). With window > 0, token i sees token j where i - j < window. With
// softcap > 0, s = cap * tanh(s / cap). Masked tokens are skipped, never added. K and V of any cache type are widened
// to float first.
// Shapes: q [n, n_heads * head_dim], kv_k [pages, 16, n_kv_heads * head_dim], kv_v [pages, 16, n_kv_heads *
//   v_head_dim], y [n, n_heads * v_head_dim].
// Order (rule 5): the history is cut at absolute positions into chunks of 128.
//   In a chunk:
//     s_j = dot(q, k_j) * scale, by the float dot of rule 4
//     max = the largest s_j
//     p_j = exp(s_j - max)
//     l   = sum of p_j in 16 lanes (lane = j mod 16), folded
//     o[i] = fma(p_j, v_j[i], o[i]) for the chunk's tokens j ascending
//   Chunks merge in ascending order; m, l, o are the totals so far and m_c, l_c, o_c those of the chunk:
//     m' = max(m, m_c), a = exp(m - m'), b = exp(m_c - m')
//     l  = fma(l_c, b, l * a)
//     o  = fma(o_c, b, o * a)
//   y = o * (1 / l)
//
// A step of few tokens with long histories has fewer workgroups than threads. Then `prepare` computes the chunks before
// the workgroups start, in groups that the threads share evenly, and the workgroup only merges them. The groups change
// no bit.
#include <algorithm>

#include "base/multiversion.h"
#include "base/name_list.h"
#include "kernels/common/fold.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/quant.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::FlashAttn;
constexpr NameList kSymbols{"dim:m", "dtype:kv_k", "pitch:kv_k", "pitch:kv_v", "attr:head_dim", "attr:v_head_dim"};

constexpr std::uint32_t kChunk = kAttendChunk;

ZRT_MULTIVERSION void add_scaled(float p, const float* v, float* o, std::uint32_t n) {
  for (std::uint32_t i = 0; i < n; ++i) o[i] = __builtin_fmaf(p, v[i], o[i]);
}

struct Head {
  float max, sum;
  float* o;  // v_head_dim
};

ZRT_MULTIVERSION void merge(const Head& chunk, std::uint32_t dim, Head& total) {
  const float max = chunk.max > total.max ? chunk.max : total.max;
  const float a = exact::exp(total.max - max), b = exact::exp(chunk.max - max);
  total.sum = __builtin_fmaf(chunk.sum, b, total.sum * a);
  for (std::uint32_t i = 0; i < dim; ++i) total.o[i] = __builtin_fmaf(chunk.o[i], b, total.o[i] * a);
  total.max = max;
}
void finish(const Head& total, std::uint32_t dim, float* y) {
  const float r = exact::rcp(total.sum);
  for (std::uint32_t i = 0; i < dim; ++i) y[i] = total.o[i] * r;
}

// The first position that the token at `pos` sees; the last one is its own.
std::uint32_t first_seen(const push::FlashAttn& c, std::uint32_t pos) {
  return c.window > 0 && pos >= c.window ? pos - c.window + 1 : 0;
}

// K or V of one token and kv head as floats: a pointer into the cell if it is float already, else to `wide`.
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
  const std::uint32_t first = first_seen(c, query.pos);
  Head total{0, 0, scratch}, chunk{0, 0, scratch + c.v_head_dim};
  bool is_first = true;
  for (std::uint32_t at = first / kChunk * kChunk; at <= query.pos; at += kChunk) {
    attend_chunk(query, head, std::max(at, first), std::min(at + kChunk, query.pos + 1), wide,
                 is_first ? total : chunk);
    if (!is_first) merge(chunk, c.v_head_dim, total);
    is_first = false;
  }
  finish(total, c.v_head_dim, y);
}

void leave_chunks(const Query& query, std::uint32_t head, float* record) {
  const auto& tile = query.tile;
  const auto& c = tile.shape;
  const std::uint32_t first = first_seen(c, query.pos), group = c.n_heads / c.n_kv_heads;
  const std::uint64_t floats = attend_record_floats(c.v_head_dim);
  for (std::uint32_t chunk = tile.chunk_begin; chunk < tile.chunk_end; ++chunk, record += group * floats) {
    Head part{0, 0, record};
    attend_chunk(query, head, std::max(chunk * kChunk, first), std::min((chunk + 1) * kChunk, query.pos + 1),
                 tile.scratch, part);
    record[floats - 16] = part.max;
    record[floats - 15] = part.sum;
  }
}

}  // namespace

void attend(const AttendTile& tile) {
  const auto& c = tile.shape;
  const std::uint32_t group = c.n_heads / c.n_kv_heads;
  for (std::uint32_t t = 0; t < tile.n; ++t) {
    const Query query{tile, tile.q + std::uint64_t{t} * c.n_heads * c.head_dim,
                      tile.page_table + static_cast<std::int64_t>(tile.slot[t]) * tile.pages_per_slot,
                      static_cast<std::uint32_t>(tile.pos[t])};
    for (std::uint32_t h = 0; h < group; ++h) {
      const std::uint32_t head = tile.kv_head * group + h;
      if (tile.records != nullptr)
        leave_chunks(query, head, tile.records + h * attend_record_floats(c.v_head_dim));
      else
        attend_head(query, head, tile.y + (std::uint64_t{t} * c.n_heads + head) * c.v_head_dim);
    }
  }
}

AttendTile attend_tile_of(const CpuArgs& args, std::uint32_t tile) {
  const auto& c = args.constants<push::FlashAttn>();
  const std::uint32_t begin = args.wg[0] * tile;
  return {c,
          args.buffer<const float>(Operand::q) + std::uint64_t{begin} * c.n_heads * c.head_dim,
          args.buffers[Operand::kv_k],
          args.buffers[Operand::kv_v],
          static_cast<DType>(args.symbols[kSymbols["dtype:kv_k"]]),
          args.symbols[kSymbols["pitch:kv_k"]],
          args.symbols[kSymbols["pitch:kv_v"]],
          args.buffer<const std::int32_t>(Operand::pos) + begin,
          args.buffer<const std::int32_t>(Operand::slot) + begin,
          args.buffer<const std::int32_t>(Operand::page_table),
          args.dim(kSymbols["dim:m"]),
          std::min(args.n_tokens - begin, tile),
          args.wg[1],
          args.buffer<float>(Operand::y) + std::uint64_t{begin} * c.n_heads * c.v_head_dim,
          reinterpret_cast<float*>(args.lds)};
}

void run_attend(const CpuArgs& args, const AttendTile& tile) {
  if (args.set != nullptr && args.set->attend != nullptr)
    args.set->attend(tile);
  else
    attend(tile);
}

namespace {

constexpr std::uint32_t kGroupsAThread = 4;  // of chunks, where histories are cut
// Where each thread has a whole history anyway, cutting pays only if a thread's share is at least so many chunks.
constexpr std::uint32_t kLeastAThread = 24;

// Which histories of a step are cut into groups of chunks: those that have more than `most` chunks, into groups of at
// most `most`. `most` is chosen so that the groups of all kv heads are about kGroupsAThread for each thread.
struct Cut {
  const push::FlashAttn& shape;
  const std::int32_t* pos;
  std::uint32_t n_tokens, most = ~0u;

  explicit Cut(const CpuArgs& args)
      : shape(args.constants<push::FlashAttn>()),
        pos(args.buffer<const std::int32_t>(Operand::pos)),
        n_tokens(args.n_tokens) {
    if (args.n_threads < 2) return;
    std::uint64_t n_chunks = 0;
    for (std::uint32_t t = 0; t < n_tokens; ++t) n_chunks += end_chunk(t) - first_chunk(t);
    n_chunks *= shape.n_kv_heads;
    if (n_tokens * shape.n_kv_heads >= args.n_threads && n_chunks < kLeastAThread * args.n_threads) return;
    const std::uint32_t n_groups = kGroupsAThread * args.n_threads;
    most = static_cast<std::uint32_t>((n_chunks + n_groups - 1) / n_groups);
  }
  std::uint32_t first_chunk(std::uint32_t t) const {
    return first_seen(shape, static_cast<std::uint32_t>(pos[t])) / kChunk;
  }
  std::uint32_t end_chunk(std::uint32_t t) const { return static_cast<std::uint32_t>(pos[t]) / kChunk + 1; }
  // How many groups token t's history is cut into; 1: it is not cut.
  std::uint32_t groups(std::uint32_t t) const {
    const std::uint32_t n = end_chunk(t) - first_chunk(t);
    return n > most ? (n + most - 1) / most : 1;
  }
};

// How many floats the records of one token and kv head take, if all pages of its slot are in use.
std::uint64_t records_floats(const CpuArgs& args) {
  const auto& c = args.constants<push::FlashAttn>();
  return (std::uint64_t{args.dim(kSymbols["dim:m"])} * 16 + kChunk - 1) / kChunk * (c.n_heads / c.n_kv_heads) *
         attend_record_floats(c.v_head_dim);
}
// The records of the cut_idx-th of the histories that are cut, for one kv head.
float* records_of(const CpuArgs& args, std::uint32_t cut_idx, std::uint32_t kv_head) {
  const std::uint32_t n_kv_heads = args.constants<push::FlashAttn>().n_kv_heads;
  return reinterpret_cast<float*>(args.shared) + (std::uint64_t{cut_idx} * n_kv_heads + kv_head) * records_floats(args);
}

// A history that is cut has more than n_kv_heads / n_groups of all chunks, where n_groups = kGroupsAThread * n_threads.
// So fewer than n_groups / n_kv_heads histories are cut.
std::uint64_t shared_bytes(const CpuArgs& args) {
  if (args.n_threads < 2) return 0;
  const std::uint32_t n_kv_heads = args.constants<push::FlashAttn>().n_kv_heads;
  const std::uint64_t n_cut = std::min(args.n_tokens, kGroupsAThread * args.n_threads / n_kv_heads);
  return n_cut * n_kv_heads * records_floats(args) * sizeof(float);
}

std::uint32_t n_prepare(const CpuArgs& args) {
  const Cut cut(args);
  std::uint32_t n = 0;
  for (std::uint32_t t = 0; t < args.n_tokens; ++t)
    if (cut.groups(t) > 1) n += cut.groups(t) * cut.shape.n_kv_heads;
  return n;
}

// Computes one group of chunks of a token and kv head.
void prepare(const CpuArgs& args) {
  const Cut cut(args);
  std::uint32_t item = args.wg[0], cut_idx = 0, t = 0;
  for (;; ++t) {
    const std::uint32_t n_groups = cut.groups(t);
    if (n_groups == 1) continue;
    if (item < n_groups * cut.shape.n_kv_heads) break;
    item -= n_groups * cut.shape.n_kv_heads;
    ++cut_idx;
  }
  const std::uint32_t n_groups = cut.groups(t), group = item % n_groups;
  const std::uint32_t first = cut.first_chunk(t), n_chunks = cut.end_chunk(t) - first;
  CpuArgs of_token = args;
  of_token.wg[0] = t;
  of_token.wg[1] = item / n_groups;
  AttendTile tile = attend_tile_of(of_token, 1);
  const std::uint32_t begin = n_chunks * group / n_groups;
  tile.chunk_begin = first + begin;
  tile.chunk_end = first + n_chunks * (group + 1) / n_groups;
  tile.records = records_of(args, cut_idx, tile.kv_head) + std::uint64_t{begin} *
                                                               (cut.shape.n_heads / cut.shape.n_kv_heads) *
                                                               attend_record_floats(cut.shape.v_head_dim);
  run_attend(args, tile);
}

void run(const CpuArgs& args) {
  const AttendTile tile = attend_tile_of(args, 1);
  const Cut cut(args);
  const std::uint32_t t = args.wg[0];
  if (cut.groups(t) == 1) return run_attend(args, tile);
  std::uint32_t cut_idx = 0;
  for (std::uint32_t other = 0; other < t; ++other) cut_idx += cut.groups(other) > 1 ? 1 : 0;
  const auto& c = tile.shape;
  const std::uint32_t group = c.n_heads / c.n_kv_heads, n_chunks = cut.end_chunk(t) - cut.first_chunk(t);
  const std::uint64_t floats = attend_record_floats(c.v_head_dim);
  for (std::uint32_t h = 0; h < group; ++h) {
    float* record = records_of(args, cut_idx, tile.kv_head) + h * floats;
    const auto head_of = [&] { return Head{record[floats - 16], record[floats - 15], record}; };
    Head total = head_of();
    for (std::uint32_t chunk = 1; chunk < n_chunks; ++chunk) {
      record += group * floats;
      merge(head_of(), c.v_head_dim, total);
    }
    finish(total, c.v_head_dim, tile.y + (tile.kv_head * group + h) * std::uint64_t{c.v_head_dim});
  }
}

}  // namespace

extern const CpuKernel kCpuKernel_flash_attn;
const CpuKernel kCpuKernel_flash_attn{
    "FLASH_ATTN",
    run,
    kSymbols,
    {{"n"}, {"n_kv_heads"}},
    KeyTypes::kKv,
    [](const std::uint32_t* s) {
      return attend_scratch_floats(s[kSymbols["attr:head_dim"]], s[kSymbols["attr:v_head_dim"]]) * 4;
    },
    prepare,
    n_prepare,
    shared_bytes};

}  // namespace zinc_rt::cpu
