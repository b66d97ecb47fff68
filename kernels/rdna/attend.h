// Computes attention, the ops FLASH_ATTN and FLASH_ATTN_BATCHED, whatever the layout of the KV cache is. The ops and
// their order of sums are defined by kernels/cpu/flash_attn.cpp. How K and V are read is left to a struct Cells;
// flash_attn.hip and flash_attn_integer.hip define one each.
// Each workgroup of 128 threads computes one query head of one token. It goes through the token's history in chunks of
// 128 positions (rule 5 of docs/arithmetic.md). In a chunk each thread first computes the score of one position. Then
// thread i computes the columns i, i + 128, ... of the weighted sum of V.
#pragma once

#include "kernels/rdna/device.h"

namespace zinc_rt::rdna {

constexpr uint32_t kWaves = kChunk / kWave;
constexpr uint32_t kMostColumns = 4;  // columns of V per thread, so v_head_dim is at most 512

// Where a token's K and V are: the caches, the slot's row of the page table, and the kv head that belongs to the query
// head. k_page(j) and v_page(j) return the page with position j; a page holds 16 positions. A pitch is the number of
// bytes from one page to the next; type is the type of the cache.
struct History {
  uint8_t *k, *v;
  const int32_t* pages;
  uint32_t k_pitch, v_pitch, type, kv_head;
  push::FlashAttn c;

  ZRT_MEMBER const uint8_t* k_page(uint32_t j) const { return k + (uint64_t)pages[j / 16] * k_pitch; }
  ZRT_MEMBER const uint8_t* v_page(uint32_t j) const { return v + (uint64_t)pages[j / 16] * v_pitch; }
};
// The positions of a chunk to which the token attends: [begin, end), as absolute positions. The chunk begins at `at`.
struct Span {
  uint32_t at, begin, end;
};

// What a workgroup keeps in LDS, the memory that its threads share.
template <class Cells>
struct AttendShared {
  float weights[kChunk];  // exp(score - largest score) of each position; 0 where the token does not attend
  float largest[kWaves];
  typename Cells::Shared cells;
};

// Returns the largest of `least` and the numbers `mine` of all threads of the workgroup, to every thread. NaNs are
// skipped. of_waves: one float per wave, in LDS. REQUIRES: all threads call it, and a barrier lies between two calls,
// because of_waves is used again.
ZRT_DEVICE float largest_of_group(float mine, float least, float* of_waves) {
  mine = mine > least ? mine : least;
  for (uint32_t other = 16; other > 0; other /= 2) {
    const float value = from_lane(mine, (thread() % kWave) ^ other);
    mine = value > mine ? value : mine;
  }
  if (thread() % kWave == 0) of_waves[thread() / kWave] = mine;
  workgroup_barrier();
  for (uint32_t i = 0; i < kWaves; ++i) mine = of_waves[i] > mine ? of_waves[i] : mine;
  return mine;
}

// Returns the sum of the span's weights to every thread. Partial sum l of 16 adds the positions j with j mod 16 = l,
// ascending; the 16 are then folded (kernels/common/fold.h). Each half of a wave computes all 16 of them.
ZRT_DEVICE float sum_of_weights(const float* weights, const Span& span) {
  float sum = 0.0f;
  for (uint32_t j = span.at + thread() % 16; j < span.end; j += 16)
    if (j >= span.begin) sum = sum + weights[j - span.at];
  for (uint32_t other = 8; other > 0; other /= 2) sum = sum + from_lane(sum, (thread() % kWave) ^ other);
  return sum;
}

// The result of one chunk, or of several merged ones: the largest score, the sum of the weights exp(score - max), and,
// for the columns of one thread, the sums of weight times V.
template <uint32_t kColumns>
struct Totals {
  float max, sum, o[kColumns];
};

// Returns the size of a record in floats. A record is the result of a chunk in scratch memory: max, sum, and the
// v_head_dim sums of weight times V.
ZRT_DEVICE uint32_t record_floats(uint32_t v_head_dim) {
  return v_head_dim + 2;
}
// Returns the first position to which a token at `pos` attends: 0, or with a window the first of the last `window`
// positions up to `pos`.
ZRT_DEVICE uint32_t first_seen_by(const push::FlashAttn& c, uint32_t pos) {
  return c.window > 0 && pos >= c.window ? pos - c.window + 1 : 0;
}

// Merges the next chunk into the totals: max' = max(max, max_c), a = exp(max - max'), b = exp(max_c - max'), sum =
// fma(sum_c, b, sum * a), o = fma(o_c, b, o * a). REQUIRES: chunks are merged in ascending order (rule 5).
template <uint32_t kColumns>
ZRT_DEVICE void merge(const Totals<kColumns>& chunk, Totals<kColumns>& total) {
  const float max = chunk.max > total.max ? chunk.max : total.max, a = exact::exp(total.max - max),
              b = exact::exp(chunk.max - max);
  total.sum = __builtin_fmaf(chunk.sum, b, total.sum * a);
#pragma unroll
  for (uint32_t i = 0; i < kColumns; ++i) total.o[i] = __builtin_fmaf(chunk.o[i], b, total.o[i] * a);
  total.max = max;
}

// Adds the sink of a head, if there are sinks, after its last chunk.
template <uint32_t kColumns>
ZRT_DEVICE void add_sink(const OpArgs& args, uint32_t head, Totals<kColumns>& total) {
  if (args.buffers[operand::FlashAttn::sinks] == 0) return;
  const SinkFactors sink = sink_factors(buffer<const float>(args, operand::FlashAttn::sinks)[head], total.max);
  total.sum = total.sum * sink.of_total + sink.share;
#pragma unroll
  for (uint32_t i = 0; i < kColumns; ++i) total.o[i] = total.o[i] * sink.of_total;
}

// Computes one query head of one token.
// Grid: (tokens, heads, parts). Of the chunks to which the token attends, part p computes every n_parts-th one, from
// the p-th on. If there is one part, its workgroup merges the chunks and writes y. If there are several, each workgroup
// leaves a record per chunk in scratch memory, and attention_merge.hip merges the records.
// A struct Cells has these functions. One that writes LDS for other threads ends with a barrier:
//   read_query(q, of_waves), by all threads: prepares the query of head_dim floats
//   score(j), by the threads whose position j is seen: returns dot(q, k_j) * scale, without the softcap
//   prepare_weights(span, weight, of_waves), by all threads, after all weights were written: prepares them for weigh();
//   `weight` is the thread's own
//   weigh(span, weights, o), by all threads: computes the sums of weight times V for the thread's columns
template <class Cells>
ZRT_DEVICE void attend(const OpArgs& args, AttendShared<Cells>& shared) {
  using Operand = operand::FlashAttn;
  using Symbol = symbol::Attention;
  const auto c = constants<push::FlashAttn>(args);
  const uint32_t pages_per_slot = dim(args, Symbol::m), t = group(0), head = group(1), me = thread(),
                 n_parts = args.symbols[Symbol::parts];
  const auto pos = (uint32_t)buffer<const int32_t>(args, Operand::pos)[t];
  const uint32_t first_seen = first_seen_by(c, pos);
  if (first_seen / kChunk + group(2) > pos / kChunk) return;
  const History history{buffer<uint8_t>(args, Operand::kv_k),
                        buffer<uint8_t>(args, Operand::kv_v),
                        buffer<const int32_t>(args, Operand::page_table) +
                            (uint64_t)buffer<const int32_t>(args, Operand::slot)[t] * pages_per_slot,
                        args.symbols[Symbol::pitch_kv_k],
                        args.symbols[Symbol::pitch_kv_v],
                        args.symbols[Symbol::dtype_kv_k],
                        head / (c.n_heads / c.n_kv_heads),
                        c};
  Cells cells{history, shared.cells};
  cells.read_query(buffer<const float>(args, Operand::q) + ((uint64_t)t * c.n_heads + head) * c.head_dim,
                   shared.largest);
  const uint64_t of_head = ((uint64_t)t * c.n_heads + head) * args.symbols[Symbol::chunks];
  Totals<kMostColumns> total{};
  bool is_first = true;
  for (uint32_t at = (first_seen / kChunk + group(2)) * kChunk; at <= pos; at += n_parts * kChunk) {
    const Span span{at, at > first_seen ? at : first_seen, at + kChunk <= pos ? at + kChunk : pos + 1};
    const bool is_seen = at + me >= span.begin && at + me < span.end;
    float s = -__builtin_inff();
    if (is_seen) {
      s = cells.score(at + me);
      if (c.softcap > 0.0f) s = c.softcap * exact::tanh(s * exact::rcp(c.softcap));
    }
    Totals<kMostColumns> chunk{};
    chunk.max = largest_of_group(s, -__builtin_inff(), shared.largest);
    shared.weights[me] = is_seen ? exact::exp(s - chunk.max) : 0.0f;
    workgroup_barrier();
    chunk.sum = sum_of_weights(shared.weights, span);
    cells.prepare_weights(span, shared.weights[me], shared.largest);
    cells.weigh(span, shared.weights, chunk.o);
    if (n_parts > 1) {
      float* record = scratch<float>(args) + (of_head + at / kChunk) * record_floats(c.v_head_dim);
      if (me == 0) record[0] = chunk.max, record[1] = chunk.sum;
#pragma unroll
      for (uint32_t i = 0; i < kMostColumns; ++i)
        if (me + i * kChunk < c.v_head_dim) record[2 + me + i * kChunk] = chunk.o[i];
      workgroup_barrier();  // shared memory is used again
    } else if (is_first) {
      total = chunk;
    } else {
      merge(chunk, total);
    }
    is_first = false;
  }
  if (n_parts > 1) return;
  add_sink(args, head, total);
  const float r = exact::rcp(total.sum);
  float* y = buffer<float>(args, Operand::y) + ((uint64_t)t * c.n_heads + head) * c.v_head_dim;
#pragma unroll
  for (uint32_t i = 0; i < kMostColumns; ++i)
    if (me + i * kChunk < c.v_head_dim) y[me + i * kChunk] = total.o[i] * r;
}

}  // namespace zinc_rt::rdna

// Defines the kernel `name`, which computes both ops for one layout of the KV cache.
#define ZRT_ATTEND(name, Cells)                        \
  ZRT_KERNEL(name, 128) {                              \
    using namespace zinc_rt;                           \
    __shared__ rdna::AttendShared<rdna::Cells> shared; \
    rdna::attend<rdna::Cells>(args, shared);           \
  }
