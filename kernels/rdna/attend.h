// FLASH_ATTN and FLASH_ATTN_BATCHED (kernels/cpu/flash_attn.cpp) but for how cells are read, which a struct Cells says. A
// workgroup of 128 threads has a token and a head. In a chunk of 128 positions a thread has one position's score, then
// some columns of the output.
#pragma once

#include "kernels/rdna/device.h"

namespace zinc_rt::rdna {

constexpr uint32_t kWaves = kChunk / kWave;
constexpr uint32_t kMostColumns = 4;  // of a thread: v_head_dim up to 512

// Where the cells are that a token sees.
struct History {
  uint8_t *k, *v;
  const int32_t* pages;
  uint32_t k_pitch, v_pitch, type, kv_head;
  push::FlashAttn c;

  ZRT_MEMBER const uint8_t* k_page(uint32_t j) const { return k + (uint64_t)pages[j / 16] * k_pitch; }
  ZRT_MEMBER const uint8_t* v_page(uint32_t j) const { return v + (uint64_t)pages[j / 16] * v_pitch; }
};
// Positions [begin, end) are those of the chunk at `at` that the token sees.
struct Span {
  uint32_t at, begin, end;
};

// LDS of a workgroup.
template <class Cells>
struct AttendShared {
  float weights[kChunk];  // of the chunk's positions
  float largest[kWaves];
  typename Cells::Shared cells;
};

// The largest of the workgroup's numbers that are above `least`, else that; a NaN is not. Every thread gets it. A barrier
// is wanted between two calls.
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

// The sum of the weights in 16 lanes, by position mod 16, folded.
ZRT_DEVICE float sum_of_weights(const float* weights, const Span& span) {
  float sum = 0.0f;
  for (uint32_t j = span.at + thread() % 16; j < span.end; j += 16)
    if (j >= span.begin) sum = sum + weights[j - span.at];
  for (uint32_t other = 8; other > 0; other /= 2) sum = sum + from_lane(sum, (thread() % kWave) ^ other);
  return sum;
}

template <uint32_t kColumns>
struct Totals {
  float max, sum, o[kColumns];
};

// Of the total of a chunk in scratch memory.
ZRT_DEVICE uint32_t record_floats(uint32_t v_head_dim) {
  return v_head_dim + 2;
}
ZRT_DEVICE uint32_t first_seen_by(const push::FlashAttn& c, uint32_t pos) {
  return c.window > 0 && pos >= c.window ? pos - c.window + 1 : 0;
}

// Adds the next chunk's total.
template <uint32_t kColumns>
ZRT_DEVICE void merge(const Totals<kColumns>& chunk, Totals<kColumns>& total) {
  const float max = chunk.max > total.max ? chunk.max : total.max, a = exact::exp(total.max - max),
              b = exact::exp(chunk.max - max);
  total.sum = __builtin_fmaf(chunk.sum, b, total.sum * a);
#pragma unroll
  for (uint32_t i = 0; i < kColumns; ++i) total.o[i] = __builtin_fmaf(chunk.o[i], b, total.o[i] * a);
  total.max = max;
}

// Cells: read_query(q) and prepare_weights(span, weights) are called by all threads, score(j) by those whose position is
// seen, weigh(span, weights, o) gives a thread its columns. Each begins behind a barrier.
// Grid: tokens; heads; parts, each with every chunk that is its own modulo their number. With one part the workgroup
// merges the chunks; several leave each chunk's total in `scratch`, for attention_merge.
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
  const float r = exact::rcp(total.sum);
  float* y = buffer<float>(args, Operand::y) + ((uint64_t)t * c.n_heads + head) * c.v_head_dim;
#pragma unroll
  for (uint32_t i = 0; i < kMostColumns; ++i)
    if (me + i * kChunk < c.v_head_dim) y[me + i * kChunk] = total.o[i] * r;
}

}  // namespace zinc_rt::rdna

// Both ops by cells of a kind.
#define ZRT_ATTEND(name, Cells)                        \
  ZRT_KERNEL(name, 128) {                              \
    using namespace zinc_rt;                           \
    __shared__ rdna::AttendShared<rdna::Cells> shared; \
    rdna::attend<rdna::Cells>(args, shared);           \
  }
