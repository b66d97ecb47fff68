// Computes attention of many tokens over KV caches of 16-bit integers (kernels/common/kv_integer.h) with WMMA, the
// instruction that multiplies matrices of bytes (matrix.h). The bits are those of flash_attn_integer.hip.
// Grid: (tiles of 16 tokens, heads). Each workgroup of four waves computes one head of the 16 tokens of a tile, its
// rows. Neighbouring tokens of the same slot form a run; a run reads K and V once for all its rows. For each chunk of
// 128 positions of a run's history:
//   1. Scores: each wave computes those of two of the chunk's eight pages, for all 16 rows.
//   2. Weights: eight threads per row find the largest score, and convert the weights to digits.
//   3. Values: each wave computes every fourth tile of 16 output columns and merges it with the chunks before.
#include "kernels/rdna/attend.h"
#include "kernels/rdna/codes.h"
#include "kernels/rdna/matrix.h"

namespace zinc_rt::rdna {

constexpr uint32_t kTokens = 16, kPage = kv_integer::kPageTokens, kPages = kChunk / kPage;

// Exact sums of products of cached codes with digits, as CodeSums of flash_attn_integer.hip, but of a tile of 16 x 16
// results.
struct TileSums {
  Sums high_high = {}, low_high = {}, high_low = {}, low_low = {};  // high_low: high byte of the code, low digit

  // Adds the products of one WMMA step. high_digits and low_digits are the lane's words of digits. two(2 i) and two(2 i
  // + 1) are words of two codes each, together those of the four values of digit word i.
  template <class Two>
  ZRT_MEMBER void add(const uint32_t* high_digits, const uint32_t* low_digits, const Two& two) {
    StepBytes high, low, upper, lower;
#pragma unroll
    for (uint32_t i = 0; i < kOwnWords; ++i) {
      const uint32_t first = two(2 * i), next = two(2 * i + 1);
      high[i] = (int)high_digits[i], low[i] = (int)low_digits[i];
      upper[i] = (int)__builtin_amdgcn_perm(next, first, 0x07050301u);
      lower[i] = (int)__builtin_amdgcn_perm(next, first, 0x06040200u);
    }
    high_high = multiply_step<true, true>(high, upper, high_high);
    low_high = multiply_step<true, false>(high, lower, low_high);
    high_low = multiply_step<true, true>(low, upper, high_low);
    low_low = multiply_step<true, false>(low, lower, low_low);
  }
  ZRT_MEMBER float joined(uint32_t r) const {
    const auto a = (int32_t)(((uint32_t)high_high[r] << 8) + (uint32_t)low_high[r]),
               b = (int32_t)(((uint32_t)high_low[r] << 8) + (uint32_t)low_low[r]);
    return __builtin_fmaf((float)a, 256.0f, (float)b);
  }
};

// What the present chunk means to a row: the row does not see it, it is the row's first one, or it is merged with those
// before.
enum Mode : uint32_t { kSkips, kBegins, kMerges };

// What a workgroup keeps in LDS. Rows of digits have four words more than they need. So when 16 lanes read the same
// word of 16 rows, they use different banks.
struct TileShared {
  alignas(16) uint32_t q_high[kTokens][kv_integer::kMaxHead / 4 + 4], q_low[kTokens][kv_integer::kMaxHead / 4 + 4];
  alignas(16) uint32_t p_high[kTokens][kChunk / 4 + 4], p_low[kTokens][kChunk / 4 + 4];
  float scores[kTokens][kChunk + 8];  // later the weights, 0 where the row does not see the position
  float score_scale[kTokens], weight_scale[kTokens], chunk_max[kTokens];
  // max, sum: the row's totals so far. keep, add: the factors of the totals and of the chunk in the next merge.
  float max[kTokens], sum[kTokens], keep[kTokens], add[kTokens];
  uint32_t mode[kTokens], is_begun[kTokens];
};

// Returns the largest of `least` and the numbers `mine` of eight neighbouring lanes, to these lanes. NaNs are skipped.
ZRT_DEVICE float largest_of_eight(float mine, float least) {
  mine = mine > least ? mine : least;
  for (uint32_t other = 4; other > 0; other /= 2) {
    const float value = from_lane(mine, (thread() % kWave) ^ other);
    mine = value > mine ? value : mine;
  }
  return mine;
}

// The range of positions that some row of a run sees. has_page(at) tells whether the page that begins at `at` has one
// of them; other pages are not read, because they may not exist.
struct PageRange {
  uint32_t first, last;  // both included
  ZRT_MEMBER bool has_page(uint32_t at) const { return at + kPage > first && at <= last; }
};

template <uint32_t kTiles>  // tiles of 16 output columns per wave
ZRT_DEVICE void attend_tile(const OpArgs& args, TileShared& shared) {
  using Operand = operand::FlashAttn;
  using Symbol = symbol::AttentionTiles;
  const auto c = constants<push::FlashAttn>(args);
  const uint32_t n = args.symbols[Symbol::rows], begin = group(0) * kTokens, head = group(1), wave = thread() / kWave,
                 lane = thread() % 16, kv_head = head / (c.n_heads / c.n_kv_heads);
  const uint32_t n_rows = n - begin < kTokens ? n - begin : kTokens;
  // Work that is done by rows is shared by eight threads per row: `row` is this thread's row, `part` its number among
  // the eight, and `mine` the row's token. Rows past the last token repeat it; their results are not stored.
  const uint32_t row = thread() / 8, part = thread() % 8, mine = begin + (row < n_rows ? row : n_rows - 1);
  const int32_t *positions = buffer<const int32_t>(args, Operand::pos) + begin,
                *slots = buffer<const int32_t>(args, Operand::slot) + begin;
  {
    const float* q = buffer<const float>(args, Operand::q) + ((uint64_t)mine * c.n_heads + head) * c.head_dim;
    float amax = 0.0f;
    for (uint32_t i = part; i < c.head_dim; i += 8) amax = magnitude(q[i]) > amax ? magnitude(q[i]) : amax;
    const CodeScale scale = code_scale(largest_of_eight(amax, 0.0f));
    for (uint32_t i = part; i < c.head_dim; i += 8) {
      const int32_t code = code_of(q[i], scale);
      ((int8_t*)shared.q_high[row])[i] = (int8_t)digits::high_digit(code);
      ((int8_t*)shared.q_low[row])[i] = (int8_t)code;
    }
    if (part == 0) shared.score_scale[row] = c.scale * scale.d, shared.is_begun[row] = 0;
  }
  float o[kTiles][8] = {};
  for (uint32_t run = 0, end = 0; run < n_rows; run = end) {
    const auto slot = (uint32_t)slots[run];
    for (end = run + 1; end < n_rows && (uint32_t)slots[end] == slot;) ++end;
    const int32_t* pages = buffer<const int32_t>(args, Operand::page_table) + (uint64_t)slot * dim(args, Symbol::m);
    const auto part_of_page = [&](unsigned operand, uint32_t at, uint32_t pitch) {
      return at_address<const uint8_t>(args.buffers[operand]) + (uint64_t)pages[at / kPage] * pitch;
    };
    const auto scale_of = [&](const uint8_t* page, uint32_t token, uint32_t dims) {
      return bf16_to_f32(((const uint16_t*)(page + kv_integer::scales_at(kv_head, c.n_kv_heads, dims)))[token]);
    };
    const PageRange range{first_seen_by(c, (uint32_t)positions[run]), (uint32_t)positions[end - 1]};
    const auto pos = (uint32_t)positions[row < n_rows ? row : n_rows - 1];
    const uint32_t first_seen = first_seen_by(c, pos);
    const bool is_of_run = row >= run && row < end;
    for (uint32_t at = range.first / kChunk * kChunk; at <= range.last; at += kChunk) {
      workgroup_barrier();
      for (uint32_t page = wave * 2; page < wave * 2 + 2; ++page) {
        if (!range.has_page(at + page * kPage)) continue;
        const uint8_t* k = part_of_page(Operand::kv_k, at + page * kPage, args.symbols[Symbol::pitch_kv_k]);
        const auto* codes = (const uint32_t*)(k + kv_integer::codes_at(kv_head, c.head_dim)) + lane;
        TileSums sums;
        for (uint32_t i = 0; i < c.head_dim; i += 16) {
          const uint32_t first = i + first_of_step<16>(0);
          sums.add(shared.q_high[lane] + first / 4, shared.q_low[lane] + first / 4,
                   [&](uint32_t w) { return codes[(first / 2 + w) * kPage]; });
        }
        const float d = scale_of(k, lane, c.head_dim);
#pragma unroll
        for (uint32_t r = 0; r < 8; ++r) {
          float s = sums.joined(r) * d * shared.score_scale[row_of_sum(r)];
          if (c.softcap > 0.0f) s = c.softcap * exact::tanh(s * exact::rcp(c.softcap));
          shared.scores[row_of_sum(r)][page * kPage + lane] = s;
        }
      }
      workgroup_barrier();
      const bool is_seen_by_row = is_of_run && first_seen < at + kChunk && pos >= at;
      const auto is_seen = [&](uint32_t i) { return is_seen_by_row && at + i >= first_seen && at + i <= pos; };
      float max = -__builtin_inff();
      for (uint32_t i = part; i < kChunk; i += 8)
        if (is_seen(i) && shared.scores[row][i] > max) max = shared.scores[row][i];
      max = largest_of_eight(max, -__builtin_inff());
      float weighted[kChunk / 8], amax = 0.0f;
#pragma unroll
      for (uint32_t m = 0; m < kChunk / 8; ++m) {
        const uint32_t i = part + 8 * m;
        float p = 0.0f, w = 0.0f;
        if (is_seen(i)) {
          p = exact::exp(shared.scores[row][i] - max);
          w = p * scale_of(part_of_page(Operand::kv_v, at + i, args.symbols[Symbol::pitch_kv_v]), (at + i) % kPage,
                           c.v_head_dim);
        }
        shared.scores[row][i] = p;
        weighted[m] = w;
        amax = magnitude(w) > amax ? magnitude(w) : amax;
      }
      const CodeScale scale = code_scale(largest_of_eight(amax, 0.0f));
#pragma unroll
      for (uint32_t m = 0; m < kChunk / 8; ++m) {
        const int32_t code = code_of(weighted[m], scale);
        ((int8_t*)shared.p_high[row])[part + 8 * m] = (int8_t)digits::high_digit(code);
        ((int8_t*)shared.p_low[row])[part + 8 * m] = (int8_t)code;
      }
      if (part == 0) {
        shared.weight_scale[row] = scale.d, shared.chunk_max[row] = max;
        shared.mode[row] = !is_seen_by_row ? kSkips : shared.is_begun[row] != 0 ? kMerges : kBegins;
      }
      workgroup_barrier();
      // Each half wave sums the weights of one row: partial sum l of 16 adds the positions i with i mod 16 = l, and the
      // 16 are folded. Weights of positions that the row does not see are 0, which changes no sum.
      for (uint32_t of = thread() / 16; of < kTokens; of += 8) {
        float sum = 0.0f;
        for (uint32_t i = lane; i < kChunk; i += 16) sum = sum + shared.scores[of][i];
        sum = fold_half(sum);
        if (lane != 0) continue;
        if (shared.mode[of] == kBegins) {
          shared.max[of] = shared.chunk_max[of], shared.sum[of] = sum, shared.is_begun[of] = 1;
        } else if (shared.mode[of] == kMerges) {
          const float both = shared.chunk_max[of] > shared.max[of] ? shared.chunk_max[of] : shared.max[of],
                      keep = exact::exp(shared.max[of] - both), add = exact::exp(shared.chunk_max[of] - both);
          shared.sum[of] = __builtin_fmaf(sum, add, shared.sum[of] * keep);
          shared.max[of] = both, shared.keep[of] = keep, shared.add[of] = add;
        }
      }
      workgroup_barrier();
#pragma unroll
      for (uint32_t tile = 0; tile < kTiles; ++tile) {
        const uint32_t first_column = (tile * 4 + wave) * 16;
        if (first_column >= c.v_head_dim) continue;
        TileSums sums;
        for (uint32_t page = 0; page < kPages; ++page) {
          if (!range.has_page(at + page * kPage)) continue;
          const uint8_t* v = part_of_page(Operand::kv_v, at + page * kPage, args.symbols[Symbol::pitch_kv_v]);
          const uint32_t first = first_of_step<16>(0);
          const auto* codes = (const uint32_t*)(v + kv_integer::codes_at(kv_head, c.v_head_dim)) + first_column + lane;
          sums.add(shared.p_high[lane] + page * 4 + first / 4, shared.p_low[lane] + page * 4 + first / 4,
                   [&](uint32_t w) { return codes[(first / 2 + w) * c.v_head_dim]; });
        }
#pragma unroll
        for (uint32_t r = 0; r < 8; ++r) {
          const uint32_t of = row_of_sum(r), mode = shared.mode[of];
          const float chunk = sums.joined(r) * shared.weight_scale[of];
          if (mode == kBegins) o[tile][r] = chunk;
          if (mode == kMerges) o[tile][r] = __builtin_fmaf(chunk, shared.add[of], o[tile][r] * shared.keep[of]);
        }
      }
    }
  }
  workgroup_barrier();
#pragma unroll
  for (uint32_t r = 0; r < 8; ++r) {
    const uint32_t of = row_of_sum(r);
    if (of >= n_rows) continue;
    SinkFactors sink;
    if (args.buffers[Operand::sinks] != 0)
      sink = sink_factors(buffer<const float>(args, Operand::sinks)[head], shared.max[of]);
    const float inverse = exact::rcp(shared.sum[of] * sink.of_total + sink.share);
    float* y = buffer<float>(args, Operand::y) + ((uint64_t)(begin + of) * c.n_heads + head) * c.v_head_dim;
#pragma unroll
    for (uint32_t tile = 0; tile < kTiles; ++tile) {
      const uint32_t column = (tile * 4 + wave) * 16 + lane;
      if (column < c.v_head_dim) y[column] = o[tile][r] * sink.of_total * inverse;
    }
  }
}

}  // namespace zinc_rt::rdna

// The kernel for heads of V of up to 128 values, and the kernel for wider heads, of up to 512 values.
ZRT_KERNEL(flash_attn_integer_tile, 128) {
  using namespace zinc_rt::rdna;
  __shared__ TileShared shared;
  attend_tile<2>(args, shared);
}
ZRT_KERNEL(flash_attn_integer_wide_tile, 128) {
  using namespace zinc_rt::rdna;
  __shared__ TileShared shared;
  attend_tile<8>(args, shared);
}
