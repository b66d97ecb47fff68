// FLASH_ATTN and FLASH_ATTN_BATCHED, in the order of docs/arithmetic.md, rule 5. A workgroup has a query token, a kv
// head with its query heads, and every gridDim.z-th chunk of 128 positions. With one part in z it merges the chunks as
// it goes; else each chunk leaves its maximum, sum and o in scratch memory, and flash_attn_merge merges them in order.
// The bits are the same however many parts there are. Symbols: n, m, type, pitch of K, pitch of V, chunks that a record
// has room for, floats of a record. Where it fits, a chunk of K and V is copied to shared memory first (staged): all of
// it is on its way at once, and what follows waits for no memory.
#include "kernels/sm_90/attention.cuh"

using namespace zinc_rt::cuda;

constexpr uint32_t kHeads = 4;  // that share a pass over K and V

template <class Cell, bool kStaged>
__device__ void attend(const OpArgs& args) {
  ZRT_DYNAMIC_SHARED(float, shared);
  __shared__ __align__(16) float scores[kChunk][kHeads], reduced[kHeads][4], sums[kHeads], maxima[kHeads];
  wait_for_inputs();
  let_next_start();
  const auto c = args.constants<push::FlashAttn>();
  const uint32_t t = blockIdx.x, kv_head = blockIdx.y, group = c.n_heads / c.n_kv_heads, type = args.symbols[2];
  if (t >= args.dim(0)) return;
  const bool is_whole = gridDim.z == 1;
  const auto pos = static_cast<uint32_t>(args.buffer<const int32_t>(3)[t]);
  const int32_t* pages =
      args.buffer<const int32_t>(5) + static_cast<uint64_t>(args.buffer<const int32_t>(4)[t]) * args.dim(1);
  const uint64_t k_cell = cell_bytes(type, static_cast<uint64_t>(c.n_kv_heads) * c.head_dim),
                 v_cell = cell_bytes(type, static_cast<uint64_t>(c.n_kv_heads) * c.v_head_dim),
                 k_head = cell_bytes(type, static_cast<uint64_t>(kv_head) * c.head_dim),
                 v_head = cell_bytes(type, static_cast<uint64_t>(kv_head) * c.v_head_dim);
  const uint32_t first = first_seen(c.window, pos), tid = threadIdx.x;
  // The queries of the group's heads, padded to 16 values; then, where chunks are merged here, o, maximum and sum.
  const uint32_t width = (c.head_dim + 15) / 16 * 16;
  float *q = shared, *total = shared + group * width;
  // The staged chunk: rows of K, each 16 bytes apart from the next so that lanes meet different banks; then those of V.
  const uint32_t k_row = c.head_dim * Cell::kBytes + 16, v_row = c.v_head_dim * Cell::kBytes;
  uint8_t* k_tile =
      reinterpret_cast<uint8_t*>(shared) + (group * (width + (is_whole ? c.v_head_dim + 2 : 0)) * 4 + 15) / 16 * 16;
  uint8_t* v_tile = k_tile + kChunk * k_row;
  for (uint32_t i = tid; i < group * width; i += kChunk)
    q[i] = i % width < c.head_dim
               ? args.buffer<const float>(
                     0)[(static_cast<uint64_t>(t) * c.n_heads + kv_head * group + i / width) * c.head_dim + i % width]
               : 0.0f;
  __syncthreads();
  const uint32_t first_chunk = first / kChunk;
  for (uint32_t chunk = first_chunk + blockIdx.z; chunk <= pos / kChunk; chunk += gridDim.z) {
    const uint32_t begin = max(chunk * kChunk, first), end = min((chunk + 1) * kChunk, pos + 1);
    const uint32_t j = chunk * kChunk + tid;
    const bool is_seen = j >= begin && j < end;
    if constexpr (kStaged) {
      stage<kChunk>(k_tile, k_row, args.buffer<const uint8_t>(1), args.symbols[3], k_cell, k_head,
                    c.head_dim * Cell::kBytes, pages, begin, end);
      stage<kChunk>(v_tile, v_row, args.buffer<const uint8_t>(2), args.symbols[4], v_cell, v_head, v_row, pages, begin,
                    end);
      wait_for_copies();
      __syncthreads();
    }
    const uint8_t* k_at = kStaged ? k_tile + tid * k_row
                                  : args.buffer<const uint8_t>(1) +
                                        static_cast<uint64_t>(pages[(is_seen ? j : begin) / 16]) * args.symbols[3] +
                                        (is_seen ? j : begin) % 16 * k_cell + k_head;
    for (uint32_t h0 = 0; h0 < group; h0 += kHeads) {
      float own[kHeads];
      scores_of<Cell, kStaged>(c, k_at, q + h0 * width, width, group - h0, own);
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
        const float s = own[h];
        scores[tid][h] = s;
        float most = is_seen && s == s ? s : -__int_as_float(0x7f800000);
        for (int w = 16; w > 0; w /= 2) {
          const float other = __shfl_xor_sync(0xFFFFFFFFu, most, w);
          most = other > most ? other : most;
        }
        if (tid % 32 == 0) reduced[h][tid / 32] = most;
      }
      __syncthreads();
      if (tid < kHeads) {
        float most = reduced[tid][0];
        for (int w = 1; w < 4; ++w) most = reduced[tid][w] > most ? reduced[tid][w] : most;
        maxima[tid] = most;
      }
      __syncthreads();
#pragma unroll
      for (int h = 0; h < kHeads; ++h)
        if (is_seen) scores[tid][h] = exact::exp(scores[tid][h] - maxima[h]);
      __syncthreads();
      if (tid < kHeads * 16) {
        const uint32_t h = tid / 16, l = tid % 16;
        float sum = 0.0f;
        for (uint32_t p = l; p < kChunk; p += 16)
          if (chunk * kChunk + p >= begin && chunk * kChunk + p < end) sum = sum + scores[p][h];
        sum = fold_half_warp(sum);
        if (l == 0) sums[h] = sum;
      }
      __syncthreads();
      const uint32_t heads = min(kHeads, group - h0);
      // Narrow heads: several teams of threads share the heads out among themselves.
      const uint32_t teams = c.v_head_dim < kChunk ? kChunk / c.v_head_dim : 1, team = tid / c.v_head_dim;
      for (uint32_t i = teams > 1 ? tid % c.v_head_dim : tid; i < c.v_head_dim && (teams == 1 || team < teams);
           i += kChunk) {
        float o[kHeads] = {};
#pragma unroll 8
        for (uint32_t p = begin; p < end; ++p) {
          const uint8_t* cell = kStaged ? v_tile + p % kChunk * v_row
                                        : args.buffer<const uint8_t>(2) +
                                              static_cast<uint64_t>(pages[p / 16]) * args.symbols[4] + p % 16 * v_cell +
                                              v_head;
          const float v = Cell::at(cell, i);
          const float4 four = *reinterpret_cast<const float4*>(scores[p % kChunk]);
          const float weight[kHeads] = {four.x, four.y, four.z, four.w};
#pragma unroll
          for (int h = 0; h < kHeads; ++h) o[h] = __fmaf_rn(weight[h], v, o[h]);
        }
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
          if (h >= heads || (teams > 1 && h % teams != team)) continue;
          const uint32_t head = h0 + h;
          if (!is_whole) {
            float* record =
                static_cast<float*>(args.scratch) +
                ((static_cast<uint64_t>(t) * c.n_heads + kv_head * group + head) * args.symbols[5] + chunk) *
                    args.symbols[6];
            record[i] = o[h];
            if (i == 0) record[c.v_head_dim] = maxima[h], record[c.v_head_dim + 1] = sums[h];
            continue;
          }
          float* sum_o = total + head * (c.v_head_dim + 2) + i;
          if (chunk == first_chunk) {
            *sum_o = o[h];
          } else {
            const float was = total[head * (c.v_head_dim + 2) + c.v_head_dim], most = maxima[h] > was ? maxima[h] : was;
            *sum_o = __fmaf_rn(o[h], exact::exp(maxima[h] - most), *sum_o * exact::exp(was - most));
          }
        }
      }
      __syncthreads();
      if (is_whole && tid < heads) {
        float* of = total + (h0 + tid) * (c.v_head_dim + 2) + c.v_head_dim;
        if (chunk == first_chunk) {
          of[0] = maxima[tid], of[1] = sums[tid];
        } else {
          const float most = maxima[tid] > of[0] ? maxima[tid] : of[0];
          of[1] = __fmaf_rn(sums[tid], exact::exp(maxima[tid] - most), of[1] * exact::exp(of[0] - most));
          of[0] = most;
        }
      }
      __syncthreads();
    }
  }
  if (!is_whole) return;
  for (uint32_t i = tid; i < group * c.v_head_dim; i += kChunk) {
    const float* of = total + i / c.v_head_dim * (c.v_head_dim + 2);
    args.buffer<float>(6)[(static_cast<uint64_t>(t) * c.n_heads + kv_head * group) * c.v_head_dim + i] =
        of[i % c.v_head_dim] * exact::rcp(of[c.v_head_dim + 1]);
  }
}

extern "C" __global__ void __launch_bounds__(128) flash_attn_f32(const __grid_constant__ OpArgs args) {
  attend<F32Cell, false>(args);
}
extern "C" __global__ void __launch_bounds__(128) flash_attn_f32_staged(const __grid_constant__ OpArgs args) {
  attend<F32Cell, true>(args);
}
extern "C" __global__ void __launch_bounds__(128) flash_attn_f16(const __grid_constant__ OpArgs args) {
  attend<F16Cell, false>(args);
}
extern "C" __global__ void __launch_bounds__(128) flash_attn_f16_staged(const __grid_constant__ OpArgs args) {
  attend<F16Cell, true>(args);
}
extern "C" __global__ void __launch_bounds__(128) flash_attn_q8_0(const __grid_constant__ OpArgs args) {
  attend<Q8Cell, false>(args);
}

// Grid: tokens, query heads. Each thread follows the maxima and the sum by itself and merges its own values of o.
extern "C" __global__ void __launch_bounds__(128) flash_attn_merge(const __grid_constant__ OpArgs args) {
  constexpr uint32_t kAtOnce = 64;
  __shared__ float a[kAtOnce], b[kAtOnce], carried;
  wait_for_inputs();
  let_next_start();
  const auto c = args.constants<push::FlashAttn>();
  const uint32_t t = blockIdx.x, head = blockIdx.y, v_dim = c.v_head_dim, floats = args.symbols[6];
  if (t >= args.dim(0)) return;
  const auto pos = static_cast<uint32_t>(args.buffer<const int32_t>(3)[t]);
  const uint32_t first = first_seen(c.window, pos) / kChunk, n = pos / kChunk + 1 - first;
  const float* records = static_cast<const float*>(args.scratch) +
                         ((static_cast<uint64_t>(t) * c.n_heads + head) * args.symbols[5] + first) * floats;
  float o[4] = {};  // of v_dim up to 512
  float sum = records[v_dim + 1];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (threadIdx.x + i * 128 < v_dim) o[i] = records[threadIdx.x + i * 128];
  for (uint32_t begin = 1; begin < n; begin += kAtOnce) {
    const uint32_t count = min(kAtOnce, n - begin);
    // a and b of each chunk: the maximum before it is the largest so far.
    __syncthreads();
    if (threadIdx.x < 32) {
      float before = begin == 1 ? records[v_dim] : carried;
      for (uint32_t piece = 0; piece < count; piece += 32) {
        const uint32_t i = piece + threadIdx.x;
        const float own =
            i < count ? records[static_cast<uint64_t>(begin + i) * floats + v_dim] : -__int_as_float(0x7f800000);
        float most = own;
        for (int w = 1; w < 32; w *= 2) {
          const float other = __shfl_up_sync(0xFFFFFFFFu, most, w);
          if (threadIdx.x >= w) most = most > other ? most : other;
        }
        float was = __shfl_up_sync(0xFFFFFFFFu, most, 1);
        was = threadIdx.x == 0 || before > was ? before : was;
        const float now = own > was ? own : was;
        if (i < count) a[i] = exact::exp(was - now), b[i] = exact::exp(own - now);
        before = __shfl_sync(0xFFFFFFFFu, now, 31);
      }
      if (threadIdx.x == 0) carried = before;
    }
    __syncthreads();
#pragma unroll 4
    for (uint32_t i = 0; i < count; ++i) {
      const float* record = records + static_cast<uint64_t>(begin + i) * floats;
      sum = __fmaf_rn(record[v_dim + 1], b[i], sum * a[i]);
#pragma unroll
      for (int p = 0; p < 4; ++p)
        if (threadIdx.x + p * 128 < v_dim) o[p] = __fmaf_rn(record[threadIdx.x + p * 128], b[i], o[p] * a[i]);
    }
  }
  const float r = exact::rcp(sum);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (threadIdx.x + i * 128 < v_dim)
      args.buffer<float>(6)[(static_cast<uint64_t>(t) * c.n_heads + head) * v_dim + threadIdx.x + i * 128] = o[i] * r;
}
