// FLASH_ATTN and FLASH_ATTN_BATCHED of steps with many tokens, at the bits of flash_attn.cu: a workgroup has up to
// symbols[5] tokens of a slot, one after another and in one aligned block of positions, with the query heads of a kv
// head. All its rows meet a chunk of K and V in shared memory. Grid: tokens, kv heads; the workgroup of a tile's first
// token computes it. Symbols: n, m, type, pitch of K, pitch of V, most tokens of a tile. Rows of a thread: kEach at
// most.
#include "kernels/sm_90/attention.cuh"

using namespace zinc_rt::cuda;

constexpr uint32_t kThreads = kAttendTileThreads, kEach = kAttendTileRows, kAtOnce = 4;

// What of a chunk a row sees: [begin, end), none if they meet.
struct Seen {
  uint32_t begin, end;
  bool is_first;  // the row's first chunk
};
__device__ __forceinline__ Seen seen_of(uint32_t window, uint32_t pos, uint32_t chunk) {
  const uint32_t first = first_seen(window, pos);
  return {max(chunk * kChunk, first), min((chunk + 1) * kChunk, pos + 1), chunk == first / kChunk};
}

template <class Cell>
__device__ void attend_tile(const OpArgs& args) {
  ZRT_DYNAMIC_SHARED(float, shared);
  let_next_start();
  wait_for_inputs();
  const auto c = args.constants<push::FlashAttn>();
  const uint32_t t = blockIdx.x, kv_head = blockIdx.y, group = c.n_heads / c.n_kv_heads, type = args.symbols[2],
                 most = args.symbols[5], n = args.dim(0), tid = threadIdx.x;
  if (t >= n) return;
  const int32_t *positions = args.buffer<const int32_t>(3), *slots = args.buffer<const int32_t>(4);
  const auto continues = [&](uint32_t i) {  // the tile of the token before
    return slots[i] == slots[i - 1] && positions[i] == positions[i - 1] + 1 && positions[i] % most != 0;
  };
  if (t > 0 && continues(t)) return;
  uint32_t n_tokens = 1;
  while (t + n_tokens < n && continues(t + n_tokens)) ++n_tokens;
  const auto pos = static_cast<uint32_t>(positions[t]);
  const uint32_t rows = n_tokens * group, all_rows = most * group;
  const int32_t* pages = args.buffer<const int32_t>(5) + static_cast<uint64_t>(slots[t]) * args.dim(1);
  const uint64_t k_cell = cell_bytes(type, static_cast<uint64_t>(c.n_kv_heads) * c.head_dim),
                 v_cell = cell_bytes(type, static_cast<uint64_t>(c.n_kv_heads) * c.v_head_dim),
                 k_head = cell_bytes(type, static_cast<uint64_t>(kv_head) * c.head_dim),
                 v_head = cell_bytes(type, static_cast<uint64_t>(kv_head) * c.v_head_dim);
  // Queries padded to 16 values; scores, then weights; of each row what its chunks are merged by; K and V.
  const uint32_t width = (c.head_dim + 15) / 16 * 16, k_pitch = c.head_dim * Cell::kBytes + 16,
                 v_pitch = c.v_head_dim * Cell::kBytes;
  float *q = shared, *p = q + all_rows * width, *before = p + all_rows * kChunk, *after = before + all_rows,
        *maxima = after + all_rows, *sums = maxima + all_rows;
  uint8_t* k_tile = reinterpret_cast<uint8_t*>(shared) + (all_rows * (width + kChunk + 4) * 4 + 15) / 16 * 16;
  uint8_t* v_tile = k_tile + kChunk * k_pitch;
  const auto token_of = [&](uint32_t row) { return t + row / group; };
  const auto head_of = [&](uint32_t row) { return kv_head * group + row % group; };
  for (uint32_t i = tid; i < rows * width; i += kThreads) {
    const uint32_t row = i / width, at = i % width;
    q[i] = at < c.head_dim ? args.buffer<const float>(
                                 0)[(static_cast<uint64_t>(token_of(row)) * c.n_heads + head_of(row)) * c.head_dim + at]
                           : 0.0f;
  }
  const uint32_t teams = kThreads / c.v_head_dim, team = tid / c.v_head_dim, dim = tid % c.v_head_dim;
  float acc[kEach] = {};
  for (uint32_t chunk = first_seen(c.window, pos) / kChunk; chunk <= pos / kChunk; ++chunk) {
    const Seen widest{seen_of(c.window, pos, chunk).begin, seen_of(c.window, pos + n_tokens - 1, chunk).end, false};
    stage<kThreads>(k_tile, k_pitch, args.buffer<const uint8_t>(1), args.symbols[3], k_cell, k_head,
                    c.head_dim * Cell::kBytes, pages, widest.begin, widest.end);
    stage<kThreads>(v_tile, v_pitch, args.buffer<const uint8_t>(2), args.symbols[4], v_cell, v_head,
                    c.v_head_dim * Cell::kBytes, pages, widest.begin, widest.end);
    wait_for_copies();
    __syncthreads();
    // Scores: a thread has a position, and every other kAtOnce rows.
    const uint32_t own = chunk * kChunk + tid % kChunk;
    for (uint32_t r0 = tid / kChunk * kAtOnce; r0 < rows; r0 += kThreads / kChunk * kAtOnce) {
      float scores[kAtOnce];
      scores_of<Cell, true>(c, k_tile + tid % kChunk * k_pitch, q + r0 * width, width, rows - r0, scores);
#pragma unroll
      for (uint32_t h = 0; h < kAtOnce; ++h) {
        if (r0 + h >= rows) break;
        const Seen seen = seen_of(c.window, pos + (r0 + h) / group, chunk);
        if (own >= seen.begin && own < seen.end) p[(r0 + h) * kChunk + tid % kChunk] = scores[h];
      }
    }
    __syncthreads();
    // Weights: a half warp has a row, a lane every 16th position.
    for (uint32_t row = tid / 16; row < rows; row += kThreads / 16) {
      const Seen seen = seen_of(c.window, pos + row / group, chunk);
      const uint32_t mask = 0xFFFFu << (tid & 16), first = chunk * kChunk + tid % 16;
      float v[kChunk / 16], top = -__int_as_float(0x7f800000), sum = 0.0f;
#pragma unroll
      for (uint32_t i = 0; i < kChunk / 16; ++i) {
        if (first + 16 * i < seen.begin || first + 16 * i >= seen.end) continue;
        v[i] = p[row * kChunk + tid % 16 + 16 * i];
        top = v[i] > top ? v[i] : top;
      }
      for (int w = 8; w > 0; w /= 2) {
        const float other = __shfl_xor_sync(mask, top, w);
        top = other > top ? other : top;
      }
#pragma unroll
      for (uint32_t i = 0; i < kChunk / 16; ++i) {
        if (first + 16 * i < seen.begin || first + 16 * i >= seen.end) continue;
        const float e = exact::exp(v[i] - top);
        p[row * kChunk + tid % 16 + 16 * i] = e;
        sum = sum + e;
      }
      sum = fold_half_warp(sum);
      if (tid % 16 != 0 || seen.begin >= seen.end) continue;
      if (seen.is_first) {
        maxima[row] = top, sums[row] = sum;
      } else {
        const float was = maxima[row], now = top > was ? top : was;
        before[row] = exact::exp(was - now), after[row] = exact::exp(top - now);
        maxima[row] = now;
        sums[row] = __fmaf_rn(sum, after[row], sums[row] * before[row]);
      }
    }
    __syncthreads();
    // V: a thread has a value of the head, and the rows of its team.
    if (team < teams) {
      float o[kEach] = {};
      // Where every row sees all that is staged, four positions at a time.
      const uint32_t begin = seen_of(c.window, pos + n_tokens - 1, chunk).begin,
                     end = seen_of(c.window, pos, chunk).end;
      const bool is_even = begin == chunk * kChunk && end == begin + kChunk;
      const auto v_at = [&](uint32_t position) { return Cell::at(v_tile + position % kChunk * v_pitch, dim); };
      if (is_even) {
        for (uint32_t at = 0; at < kChunk; at += 4) {
          const float v[4] = {v_at(at), v_at(at + 1), v_at(at + 2), v_at(at + 3)};
#pragma unroll
          for (uint32_t e = 0; e < kEach; ++e) {
            const uint32_t row = team + e * teams;
            if (row >= rows) break;
            const float4 w = *reinterpret_cast<const float4*>(p + row * kChunk + at);
            o[e] = __fmaf_rn(w.x, v[0], o[e]);
            o[e] = __fmaf_rn(w.y, v[1], o[e]);
            o[e] = __fmaf_rn(w.z, v[2], o[e]);
            o[e] = __fmaf_rn(w.w, v[3], o[e]);
          }
        }
      } else {
        for (uint32_t at = widest.begin; at < widest.end; ++at) {
          const float v = v_at(at);
#pragma unroll
          for (uint32_t e = 0; e < kEach; ++e) {
            const uint32_t row = team + e * teams;
            if (row >= rows) break;
            const Seen seen = seen_of(c.window, pos + row / group, chunk);
            if (at >= seen.begin && at < seen.end) o[e] = __fmaf_rn(p[row * kChunk + at % kChunk], v, o[e]);
          }
        }
      }
#pragma unroll
      for (uint32_t e = 0; e < kEach; ++e) {
        const uint32_t row = team + e * teams;
        if (row >= rows) break;
        const Seen seen = seen_of(c.window, pos + row / group, chunk);
        if (seen.begin < seen.end) acc[e] = seen.is_first ? o[e] : __fmaf_rn(o[e], after[row], acc[e] * before[row]);
      }
    }
    __syncthreads();
  }
  if (team >= teams) return;
#pragma unroll
  for (uint32_t e = 0; e < kEach; ++e) {
    const uint32_t row = team + e * teams;
    if (row >= rows) break;
    args.buffer<float>(6)[(static_cast<uint64_t>(token_of(row)) * c.n_heads + head_of(row)) * c.v_head_dim + dim] =
        acc[e] * exact::rcp(sums[row]);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 2) flash_attn_tile_f32(const __grid_constant__ OpArgs args) {
  attend_tile<F32Cell>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 2) flash_attn_tile_f16(const __grid_constant__ OpArgs args) {
  attend_tile<F16Cell>(args);
}
