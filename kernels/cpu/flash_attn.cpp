// This is the CPU reference kernel of the op FLASH_ATTN. It computes the causal attention of one query token per slot
// over the slot's paged K and V. Query heads are grouped: head h reads kv head h / (n_heads / n_kv_heads). With window
// > 0, token i attends only to tokens j with i - j < window. With softcap > 0, scores become s = cap * tanh(s / cap).
// Masked tokens are skipped, never added. If sinks are given, each head has one more score, sinks[head], which has a
// share of the exponentials but no value (gpt-oss). It is neither scaled nor capped. K and V of f32, f16 and q8_0 are
// converted to float first. Rotated K and V (r8, r4) and integers (i16) are multiplied as integers (quant/rotated_kv.h,
// quant/integer_kv.h).
// Shapes: q [n, n_heads * head_dim], kv_k [pages, 16, n_kv_heads * head_dim], kv_v [pages, 16, n_kv_heads *
// v_head_dim], sinks [n_heads] or absent, y [n, n_heads * v_head_dim].
// Order of sums (rule 5): the history is split into chunks of 128 positions, at multiples of 128.
//   Within a chunk:
//     s_j = dot(q, k_j) * scale, by the float dot of rule 4
//       for rotated keys: rotated_dots(q, k_j) * (scale / head_dim)
//       for integers: integer_dots(q, k_j) * (scale * d_q)
//     max = the largest s_j
//     p_j = exp(s_j - max)
//     l   = sum of p_j in 16 lanes (lane = j mod 16), folded
//     o[i] = fma(p_j, v_j[i], o[i]) for the chunk's tokens j ascending
//       for integers: the weights p_j * d_j become the digits of 16-bit integers, with one scale d for the chunk's
//         tokens to which the row attends. A and B are the exact sums of the high and the low digits times the codes.
//         o[i] = fma(float(A), 256, float(B)) * d
//       for rotated values: the same for each block of 64 values, with T[code] in place of the code
//   Chunks are merged in ascending order. m, l, o are the totals so far, and m_c, l_c, o_c the chunk's:
//     m' = max(m, m_c), a = exp(m - m'), b = exp(m_c - m')
//     l  = fma(l_c, b, l * a)
//     o  = fma(o_c, b, o * a)
//   A sink comes after the last chunk: m' = max(m, sink), a = exp(m - m'), l = l * a + exp(sink - m'), o = o * a. So a
//   sink of minus infinity changes no bit.
//   y = o * (1 / l); for rotated values, rotate_output_back is applied to it
//
// A step of few tokens with long histories has fewer workgroups than threads. Then `prepare` computes the chunks before
// the workgroups start, in groups that the threads share evenly, and the workgroup only merges them. The groups change
// no bit.
#include <algorithm>

#include "base/kv_type.h"
#include "base/multiversion.h"
#include "base/name_list.h"
#include "kernels/common/fold.h"
#include "kernels/common/operands.h"
#include "kernels/common/sink.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/integer_kv.h"
#include "kernels/cpu/quant/quant.h"
#include "kernels/cpu/quant/rotated_kv.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::FlashAttn;
constexpr NameList kSymbols{"dim:m",      "dtype:kv_k",    "dtype:kv_v",     "pitch:kv_k",
                            "pitch:kv_v", "attr:head_dim", "attr:v_head_dim"};

constexpr std::uint32_t kChunk = kAttendChunk;

ZRT_MULTIVERSION void add_scaled(float p, const float* v, float* o, std::uint32_t n) {
  for (std::uint32_t i = 0; i < n; ++i) o[i] = __builtin_fmaf(p, v[i], o[i]);
}

struct Head {
  float max, sum;
  float* o;  // weighted sum of v_head_dim values
};

ZRT_MULTIVERSION void merge(const Head& chunk, std::uint32_t dim, Head& total) {
  const float max = chunk.max > total.max ? chunk.max : total.max;
  const float a = exact::exp(total.max - max), b = exact::exp(chunk.max - max);
  total.sum = __builtin_fmaf(chunk.sum, b, total.sum * a);
  for (std::uint32_t i = 0; i < dim; ++i) total.o[i] = __builtin_fmaf(chunk.o[i], b, total.o[i] * a);
  total.max = max;
}
// Returns the first position to which the token at `pos` attends. The last position is `pos` itself.
std::uint32_t first_seen(const push::FlashAttn& c, std::uint32_t pos) {
  return c.window > 0 && pos >= c.window ? pos - c.window + 1 : 0;
}

// Returns K or V of one token and kv head as floats. The result points to the cell if the cell's type is float.
// Otherwise the values are converted, and the result points to `wide`.
const float* widen(const std::byte* cell, DType kv, std::uint32_t head, std::uint32_t dim, float* wide) {
  const std::byte* at = cell + row_bytes(kv, std::uint64_t{head} * dim);
  if (kv == DType::kF32) return reinterpret_cast<const float*>(at);
  quant_format(kv)->dequantize_row(at, wide, dim);
  return wide;
}

// Describes one query token of a tile, for the query heads of one kv head.
struct Query {
  const AttendTile& tile;
  const float* q;  // the token's queries, n_heads * head_dim values
  const std::int32_t* pages;
  std::uint32_t pos;
};
// Holds the query of one head, converted to the type by which the cache's keys are multiplied.
struct HeadQuery {
  const float* q;
  float scale;           // factor by which the scores are multiplied
  RotatedQuery rotated;  // used if keys are rotated
  IntegerQuery integer;  // used if keys are integers
};
const std::byte* page_of(const void* cache, std::uint64_t pitch, const std::int32_t* pages, std::uint32_t pos) {
  return static_cast<const std::byte*>(cache) + static_cast<std::uint64_t>(pages[pos / 16]) * pitch;
}
// Span is a range of positions [begin, end) within one chunk.
struct Span {
  std::uint32_t begin, end;
};

// Reader holds the functions that read the cells of one layout of the KV cache. kReaders has one Reader per layout.
// `wide` is memory for the floats of one head.
struct Reader {
  // Converts the query for this layout: sets `rotated` or `integer`, and adapts its scale.
  void (*make_query)(std::uint32_t head_dim, HeadQuery& query);
  // Sets scores[j - begin] to the score of key j, not yet multiplied by the query's scale.
  void (*score)(const Query& query, const HeadQuery& head, Span span, float* wide, float* scores);
  // Sets o to the sum over the span of p[j - begin] times the value of token j.
  void (*weigh)(const Query& query, const float* p, Span span, float* wide, float* o);
  // Converts a head's result y in place, after the last chunk: turns rotated values back.
  void (*finish)(float* y, std::uint32_t v_head_dim);
};

// leave_query() and leave_output() do nothing. kReaders lists them for layouts whose queries or results are not
// converted.
void leave_query(std::uint32_t, HeadQuery&) {}
void leave_output(float*, std::uint32_t) {}

void score_tokens(const Query& query, const HeadQuery& head, Span span, float* wide, float* scores) {
  const auto& tile = query.tile;
  const auto& c = tile.shape;
  const QuantFormat& f32 = *quant_format(DType::kF32);
  const std::uint64_t bytes = row_bytes(tile.k_type, std::uint64_t{c.n_kv_heads} * c.head_dim);
  for (std::uint32_t j = span.begin; j < span.end; ++j) {
    const auto* cell = page_of(tile.kv_k, tile.k_pitch, query.pages, j) + j % 16 * bytes;
    scores[j - span.begin] = f32.dot(widen(cell, tile.k_type, tile.kv_head, c.head_dim, wide), head.q, c.head_dim);
  }
}
void weigh_tokens(const Query& query, const float* p, Span span, float* wide, float* o) {
  const auto& tile = query.tile;
  const auto& c = tile.shape;
  const std::uint64_t bytes = row_bytes(tile.v_type, std::uint64_t{c.n_kv_heads} * c.v_head_dim);
  std::fill_n(o, c.v_head_dim, 0.0f);
  for (std::uint32_t j = span.begin; j < span.end; ++j) {
    const auto* cell = page_of(tile.kv_v, tile.v_pitch, query.pages, j) + j % 16 * bytes;
    add_scaled(p[j - span.begin], widen(cell, tile.v_type, tile.kv_head, c.v_head_dim, wide), o, c.v_head_dim);
  }
}

// Computes the scores of keys whose cells are interleaved by page. dots_of(page, dots) computes the dots of a page's 16
// tokens.
template <class DotsOf>
void score_pages(const Query& query, Span span, float* scores, const DotsOf& dots_of) {
  const auto& tile = query.tile;
  for (std::uint32_t at = span.begin / 16 * 16; at < span.end; at += 16) {
    float dots[16];
    dots_of(page_of(tile.kv_k, tile.k_pitch, query.pages, at), dots);
    for (std::uint32_t j = std::max(at, span.begin); j < std::min(at + 16, span.end); ++j)
      scores[j - span.begin] = dots[j - at];
  }
}

void make_rotated_query(std::uint32_t head_dim, HeadQuery& query) {
  rotate_query(query.q, head_dim, query.rotated);
  query.scale = query.scale * (1.0f / static_cast<float>(head_dim));
}
void score_rotated(const Query& query, const HeadQuery& head, Span span, float*, float* scores) {
  const auto& tile = query.tile;
  const RotatedPart part{tile.k_type, tile.shape.n_kv_heads, tile.shape.head_dim};
  score_pages(query, span, scores,
              [&](const std::byte* page, float* dots) { rotated_dots(head.rotated, page, tile.kv_head, part, dots); });
}
void make_integer_query(std::uint32_t head_dim, HeadQuery& query) {
  query.scale = query.scale * quantize_to_digits(query.q, head_dim, query.integer.high, query.integer.low);
}
void score_integers(const Query& query, const HeadQuery& head, Span span, float*, float* scores) {
  const auto& tile = query.tile;
  const IntegerPart part{tile.shape.n_kv_heads, tile.shape.head_dim};
  score_pages(query, span, scores,
              [&](const std::byte* page, float* dots) { integer_dots(head.integer, page, tile.kv_head, part, dots); });
}

// Computes the weighted sum of values whose cells are interleaved by page, with integers. A page's 16 weights are p
// times the scales from scales_of(page, scales). The weights are converted to digits, and add_page(high, low, page,
// sums) adds the products of the digits with the values. `o` receives the n results.
template <class ScalesOf, class AddPage>
void weigh_pages(const Query& query, const float* p, Span span, const ScalesOf& scales_of, const AddPage& add_page,
                 std::uint32_t n, float* o) {
  const auto& tile = query.tile;
  const std::uint32_t begin = span.begin / 16 * 16;
  float weights[kChunk] = {};
  const auto page = [&](std::uint32_t at) { return page_of(tile.kv_v, tile.v_pitch, query.pages, at); };
  for (std::uint32_t at = begin; at < span.end; at += 16) {
    float d[16];
    scales_of(page(at), d);
    for (std::uint32_t j = std::max(at, span.begin); j < std::min(at + 16, span.end); ++j)
      weights[j - begin] = p[j - span.begin] * d[j - at];
  }
  std::int16_t high[kChunk], low[kChunk];
  const float d = quantize_to_digits(weights, kChunk, high, low);
  IntegerSums sums{};
  for (std::uint32_t at = begin; at < span.end; at += 16)
    add_page(high + (at - begin), low + (at - begin), page(at), sums);
  join_sums(sums, n, d, o);
}
void weigh_rotated(const Query& query, const float* p, Span span, float*, float* o) {
  const auto& tile = query.tile;
  RotatedBlock of{{tile.v_type, tile.shape.n_kv_heads, tile.shape.v_head_dim}, tile.kv_head, 0};
  for (; of.block < tile.shape.v_head_dim / kv::kBlock; ++of.block, o += kv::kBlock)
    weigh_pages(
        query, p, span, [&](const std::byte* page, float* d) { rotated_value_scales(page, of, d); },
        [&](const std::int16_t* high, const std::int16_t* low, const std::byte* page, IntegerSums& sums) {
          add_rotated_values(high, low, page, of, sums);
        },
        kv::kBlock, o);
}
void weigh_integers(const Query& query, const float* p, Span span, float*, float* o) {
  const auto& tile = query.tile;
  const IntegerPart part{tile.shape.n_kv_heads, tile.shape.v_head_dim};
  weigh_pages(
      query, p, span, [&](const std::byte* page, float* d) { integer_scales(page, tile.kv_head, part, d); },
      [&](const std::int16_t* high, const std::int16_t* low, const std::byte* page, IntegerSums& sums) {
        add_integer_values(high, low, page, tile.kv_head, part, sums);
      },
      tile.shape.v_head_dim, o);
}

constexpr Reader kReaders[] = {
    {leave_query, score_tokens, weigh_tokens, leave_output},
    {make_rotated_query, score_rotated, weigh_rotated, rotate_output_back},
    {make_integer_query, score_integers, weigh_integers, leave_output},
};
const Reader& reader_of(const AttendTile& tile) {
  return kReaders[static_cast<std::size_t>(find_kv_cell(tile.k_type)->layout)];
}

HeadQuery make_head_query(const Query& query, std::uint32_t head) {
  const auto& c = query.tile.shape;
  HeadQuery made;
  made.q = query.q + std::uint64_t{head} * c.head_dim;
  made.scale = c.scale;
  reader_of(query.tile).make_query(c.head_dim, made);
  return made;
}

// Computes the part of the result of one head that comes from the positions `span` of a chunk: the largest score, the
// sum of the exponentials, and the sum of the values weighted by the exponentials.
void attend_chunk(const Query& query, const HeadQuery& head, Span span, float* wide, Head& out) {
  const auto& c = query.tile.shape;
  const Reader& reader = reader_of(query.tile);
  float scores[kChunk];
  float lanes[16] = {};
  reader.score(query, head, span, wide, scores);
  out.max = -__builtin_inff();
  const std::uint32_t n = span.end - span.begin;
  for (std::uint32_t i = 0; i < n; ++i) {
    float s = scores[i] * head.scale;
    if (c.softcap > 0.0f) s = c.softcap * exact::tanh(s * exact::rcp(c.softcap));
    scores[i] = s;
    out.max = s > out.max ? s : out.max;
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    const float p = exact::exp(scores[i] - out.max);
    scores[i] = p;
    float& lane = lanes[(span.begin + i) % 16];
    lane = lane + p;
  }
  out.sum = fold16(lanes);
  reader.weigh(query, scores, span, wide, out.o);
}

// Computes a head's result y = o * (1 / l), where l is the sum of the exponentials, after its sink if it has one. Then
// converts y as the values' layout requires (Reader::finish).
void finish(const AttendTile& tile, std::uint32_t head, const Head& total, float* y) {
  const std::uint32_t dim = tile.shape.v_head_dim;
  float sum = total.sum;
  if (tile.sinks != nullptr) {
    const SinkFactors sink = sink_factors(tile.sinks[head], total.max);
    sum = sum * sink.of_total + sink.share;
    for (std::uint32_t i = 0; i < dim; ++i) total.o[i] = total.o[i] * sink.of_total;
  }
  const float r = exact::rcp(sum);
  for (std::uint32_t i = 0; i < dim; ++i) y[i] = total.o[i] * r;
  reader_of(tile).finish(y, dim);
}

void attend_head(const Query& query, std::uint32_t head, float* y) {
  const auto& c = query.tile.shape;
  float* scratch = query.tile.scratch;
  float* wide = scratch + 2 * c.v_head_dim;
  const std::uint32_t first = first_seen(c, query.pos);
  Head total{0, 0, scratch}, chunk{0, 0, scratch + c.v_head_dim};
  const HeadQuery head_query = make_head_query(query, head);
  bool is_first = true;
  for (std::uint32_t at = first / kChunk * kChunk; at <= query.pos; at += kChunk) {
    attend_chunk(query, head_query, {std::max(at, first), std::min(at + kChunk, query.pos + 1)}, wide,
                 is_first ? total : chunk);
    if (!is_first) merge(chunk, c.v_head_dim, total);
    is_first = false;
  }
  finish(query.tile, head, total, y);
}

// Writes one record per chunk of the tile for one head: the weighted sums of values (padded to a multiple of 16), the
// largest score, and the sum of the exponentials. The op's workgroups merge the records later. `record` is the head's
// first record. The records of a head in neighbouring chunks are `group` records apart.
void leave_chunks(const Query& query, std::uint32_t head, float* record) {
  const auto& tile = query.tile;
  const auto& c = tile.shape;
  const std::uint32_t first = first_seen(c, query.pos), group = c.n_heads / c.n_kv_heads;
  const std::uint64_t floats = attend_record_floats(c.v_head_dim);
  const HeadQuery head_query = make_head_query(query, head);
  for (std::uint32_t chunk = tile.chunk_begin; chunk < tile.chunk_end; ++chunk, record += group * floats) {
    Head part{0, 0, record};
    attend_chunk(query, head_query, {std::max(chunk * kChunk, first), std::min((chunk + 1) * kChunk, query.pos + 1)},
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
          static_cast<DType>(args.symbols[kSymbols["dtype:kv_v"]]),
          args.symbols[kSymbols["pitch:kv_k"]],
          args.symbols[kSymbols["pitch:kv_v"]],
          args.buffer<const std::int32_t>(Operand::pos) + begin,
          args.buffer<const std::int32_t>(Operand::slot) + begin,
          args.buffer<const std::int32_t>(Operand::page_table),
          args.dim(kSymbols["dim:m"]),
          std::min(args.n_tokens - begin, tile),
          args.wg[1],
          args.buffer<float>(Operand::y) + std::uint64_t{begin} * c.n_heads * c.v_head_dim,
          reinterpret_cast<float*>(args.lds),
          args.buffer<const float>(Operand::sinks)};
}

void run_attend(const CpuArgs& args, const AttendTile& tile) {
  if (args.set != nullptr && args.set->attend != nullptr)
    args.set->attend(tile);
  else
    attend(tile);
}

namespace {

constexpr std::uint32_t kGroupsAThread = 4;  // number of groups per thread into which long histories are split
// If there are at least as many histories as threads, splitting them is faster only if a thread's share is at least
// this many chunks.
constexpr std::uint32_t kLeastAThread = 24;

// Decides which histories of a step are split. Histories with more than `most` chunks are split into groups of at most
// `most` chunks. `most` is chosen so that there are about kGroupsAThread groups per thread, over all kv heads.
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
  // Returns the number of groups into which token t's history is split, or 1 if it is not split.
  std::uint32_t groups(std::uint32_t t) const {
    const std::uint32_t n = end_chunk(t) - first_chunk(t);
    return n > most ? (n + most - 1) / most : 1;
  }
};

// Returns how many floats the records of one token and kv head take if all pages of the token's slot are in use.
std::uint64_t records_floats(const CpuArgs& args) {
  const auto& c = args.constants<push::FlashAttn>();
  return (std::uint64_t{args.dim(kSymbols["dim:m"])} * 16 + kChunk - 1) / kChunk * (c.n_heads / c.n_kv_heads) *
         attend_record_floats(c.v_head_dim);
}
// Returns the memory for the records of one kv head and one split history. cut_idx numbers the split histories from 0.
float* records_of(const CpuArgs& args, std::uint32_t cut_idx, std::uint32_t kv_head) {
  const std::uint32_t n_kv_heads = args.constants<push::FlashAttn>().n_kv_heads;
  return reinterpret_cast<float*>(args.shared) + (std::uint64_t{cut_idx} * n_kv_heads + kv_head) * records_floats(args);
}

// Returns the bytes for the records of all histories that may be split. A history is split only if it has more than
// n_kv_heads / n_groups of all chunks, where n_groups = kGroupsAThread * n_threads. So fewer than n_groups / n_kv_heads
// histories are split.
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

// Runs before run(), once for each group of chunks of a split history and for each kv head. Computes the group's chunks
// and stores a record per chunk and head, which run() then merges.
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
    const std::uint32_t head = tile.kv_head * group + h;
    finish(tile, head, total, tile.y + head * std::uint64_t{c.v_head_dim});
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
