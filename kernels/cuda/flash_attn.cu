// FLASH_ATTN and FLASH_ATTN_BATCHED in the order of docs/arithmetic.md, rule 5, for caches and heads of any kind, and
// flash_attn_merge. Faster kernels replace the first where they can: flash_attn_staged.cu if heads consist of whole
// vectors, flash_attn_runs.cu and flash_attn_tile.cu in steps with several and with many tokens of a slot. The operands
// are named in op_args.h (binding::Attention, symbol::Attention).
// Grid: (tokens, kv heads, parts). A workgroup computes one token and the query heads of one kv head, over every
// gridDim.z-th chunk of 128 positions. With one part it merges the chunks itself. With several, each chunk leaves a
// record (o, maximum, sum) in scratch memory, and flash_attn_merge merges the records in order. The bits are the same
// for any number of parts.
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/merge_few.h"

using namespace zinc_rt::cuda;

constexpr uint32_t kHeads = 4;  // heads that share a pass over K and V

// The simple attention kernel. Shared memory: q of the group's heads, and o, maximum and sum of each of them.
template <class Cell>
__device__ void attend(const OpArgs& args) {
  ZRT_DYNAMIC_SHARED(float, shared);
  __shared__ __align__(16) float scores[kChunk][kHeads], reduced[kHeads][4], sums[kHeads], maxima[kHeads];
  let_next_start();
  wait_for_inputs();
  const auto c = args.constants<push::FlashAttn>();
  const uint32_t t = blockIdx.x, kv_head = blockIdx.y, group = c.n_heads / c.n_kv_heads,
                 type = args.symbols[symbol::Attention::dtype_kv_k];
  if (t >= args.dim(symbol::Attention::rows)) return;
  const bool is_whole = gridDim.z == 1;
  const auto pos = static_cast<uint32_t>(args.buffer<const int32_t>(binding::Attention::pos)[t]);
  const int32_t* pages =
      args.buffer<const int32_t>(binding::Attention::page_table) +
      static_cast<uint64_t>(args.buffer<const int32_t>(binding::Attention::slot)[t]) * args.dim(symbol::Attention::m);
  const uint64_t k_cell = cell_bytes(type, static_cast<uint64_t>(c.n_kv_heads) * c.head_dim),
                 v_cell = cell_bytes(type, static_cast<uint64_t>(c.n_kv_heads) * c.v_head_dim),
                 k_head = cell_bytes(type, static_cast<uint64_t>(kv_head) * c.head_dim),
                 v_head = cell_bytes(type, static_cast<uint64_t>(kv_head) * c.v_head_dim);
  const uint32_t first = first_seen(c.window, pos), tid = threadIdx.x;
  // q: the queries of the group's heads, each padded with zeros to a multiple of 16 values. total: if chunks are merged
  // here, o, maximum and sum of each head.
  const uint32_t width = (c.head_dim + 15) / 16 * 16;
  float *q = shared, *total = shared + group * width;
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
    const uint8_t* k_at =
        args.buffer<const uint8_t>(binding::Attention::kv_k) +
        static_cast<uint64_t>(pages[(is_seen ? j : begin) / 16]) * args.symbols[symbol::Attention::pitch_kv_k] +
        (is_seen ? j : begin) % 16 * k_cell + k_head;
    for (uint32_t h0 = 0; h0 < group; h0 += kHeads) {
      float own[kHeads];
      scores_of<Cell>(c, k_at, q + h0 * width, width, group - h0, own);
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
      // If heads are narrow, teams of threads share the heads.
      const uint32_t teams = c.v_head_dim < kChunk ? kChunk / c.v_head_dim : 1, team = tid / c.v_head_dim;
      for (uint32_t i = teams > 1 ? tid % c.v_head_dim : tid; i < c.v_head_dim && (teams == 1 || team < teams);
           i += kChunk) {
        float o[kHeads] = {};
#pragma unroll 8
        for (uint32_t p = begin; p < end; ++p) {
          const uint8_t* cell = args.buffer<const uint8_t>(binding::Attention::kv_v) +
                                static_cast<uint64_t>(pages[p / 16]) * args.symbols[symbol::Attention::pitch_kv_v] +
                                p % 16 * v_cell + v_head;
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
                static_cast<float*>(args.scratch) + ((static_cast<uint64_t>(t) * c.n_heads + kv_head * group + head) *
                                                         args.symbols[symbol::Attention::chunks] +
                                                     chunk) *
                                                        args.symbols[symbol::Attention::floats];
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
    args.buffer<float>(
        binding::Attention::y)[(static_cast<uint64_t>(t) * c.n_heads + kv_head * group) * c.v_head_dim + i] =
        of[i % c.v_head_dim] * exact::rcp(of[c.v_head_dim + 1]);
  }
}

extern "C" __global__ void __launch_bounds__(128) flash_attn_f32(const __grid_constant__ OpArgs args) {
  attend<F32Cell>(args);
}
extern "C" __global__ void __launch_bounds__(128) flash_attn_f16(const __grid_constant__ OpArgs args) {
  attend<F16Cell>(args);
}
extern "C" __global__ void __launch_bounds__(128) flash_attn_q8_0(const __grid_constant__ OpArgs args) {
  attend<Q8Cell>(args);
}

// The factors for merging a chunk: `before` multiplies the merged o and sum, `after` those of the chunk.
struct MergeFactors {
  float before, after;
};
// Computes the factors of 32 chunks, one per lane. The maximum before a chunk is the largest so far, so a prefix
// maximum gives it to all lanes at once. most: the maximum of the lane's chunk, or minus infinity if there is none.
// largest: the maximum before the first of these chunks; becomes the one after the last.
__device__ __forceinline__ MergeFactors merge_factors(float most, float& largest) {
  const uint32_t lane = threadIdx.x % 32;
  float upto = most;
#pragma unroll
  for (int w = 1; w < 32; w *= 2) {
    const float other = __shfl_up_sync(0xFFFFFFFFu, upto, w);
    if (lane >= w) upto = upto > other ? upto : other;
  }
  float was = __shfl_up_sync(0xFFFFFFFFu, upto, 1);
  was = lane == 0 || largest > was ? largest : was;
  const float now = most > was ? most : was;
  largest = __shfl_sync(0xFFFFFFFFu, now, 31);
  return {exact::exp(was - now), exact::exp(most - now)};
}

// Returns a head's value o * (1 / sum), after its sink if it has one. largest: the largest score of the chunks.
template <bool kHasSinks>
__device__ __forceinline__ float finished(const OpArgs& args, uint32_t head, float o, float sum, float largest) {
  if constexpr (kHasSinks) {
    const auto sink = factors_of_sink(args, head, largest);
    return o * sink.of_total * exact::rcp(sum * sink.of_total + sink.share);
  }
  return o * exact::rcp(sum);
}

// Merges the records of a head's n chunks (at most kMergeFew) by a warp, for 32 values of the head. Each lane returns
// value first_value + lane, holds the factors of one chunk, and issues all its loads at once.
template <bool kHasSinks>
__device__ __forceinline__ float merged_few(const OpArgs& args, uint32_t head, const float* records, uint32_t floats,
                                            uint32_t n, uint32_t v_dim, uint32_t first_value) {
  const uint32_t lane = threadIdx.x % 32, i = first_value + lane;
  const bool has_value = i < v_dim, has_chunk = 1 + lane < n;
  const float* own = records + static_cast<uint64_t>(1 + lane) * floats + v_dim;
  const float most = has_chunk ? own[0] : -__int_as_float(0x7f800000), own_sum = has_chunk ? own[1] : 0.0f;
  float o = has_value ? records[i] : 0.0f, largest = records[v_dim], sum = records[v_dim + 1];
  if (n > 1) {
    const MergeFactors f = merge_factors(most, largest);
    const float* of = records + floats + i;
#pragma unroll 8
    for (uint32_t j = 0; j < n - 1; ++j, of += floats) {
      const float o_j = has_value ? *of : 0.0f, before = __shfl_sync(0xFFFFFFFFu, f.before, static_cast<int>(j)),
                  after = __shfl_sync(0xFFFFFFFFu, f.after, static_cast<int>(j));
      o = __fmaf_rn(o_j, after, o * before);
      sum = __fmaf_rn(__shfl_sync(0xFFFFFFFFu, own_sum, static_cast<int>(j)), after, sum * before);
    }
  }
  return finished<kHasSinks>(args, head, o, sum, largest);
}

// Merges a head's records like merged_few(), for any number of chunks. The warp's shared memory (`memory`) holds the
// factors of 32 chunks, then pieces of 32 values of records. The pieces of the next kDepth * kMergeBatch records are
// copied ahead, because records that were written early may have left the L2 cache. The first chunk needs no factors.
template <uint32_t kDepth, bool kHasSinks>
__device__ __forceinline__ float merged(const OpArgs& args, uint32_t head, float4* memory, const float* records,
                                        uint32_t floats, uint32_t n, uint32_t v_dim, uint32_t first_value) {
  const uint32_t lane = threadIdx.x % 32, row = lane / 8, at = lane % 8 * 4;
  float* const pieces = reinterpret_cast<float*>(memory + 32);
  const bool has_piece = first_value + at < floats;
  const float* from = records + static_cast<uint64_t>(1 + row) * floats + first_value + at;
  uint32_t asked = 1 + row;
  const auto copy = [&](uint32_t stage) {
    float* to = pieces + (stage * kMergeBatch + row) * 32 + at;
#pragma unroll
    for (uint32_t i = 0; i < kMergeBatch; i += 4, from += 4 * floats, asked += 4)
      if (has_piece && asked < n) copy_16(to + i * 32, from);
    end_copy_batch();
  };
  // Loads the maximum and the sum of the record of chunk first + lane.
  const auto ask = [&](uint32_t first) {
    const float* own = records + static_cast<uint64_t>(first + lane) * floats + v_dim;
    const bool is_there = first + lane < n;
    return is_there ? make_float2(own[0], own[1]) : make_float2(-__int_as_float(0x7f800000), 0.0f);
  };
  float2 next = ask(1), after_next = ask(33);
  float o = first_value + lane < v_dim ? records[first_value + lane] : 0.0f, largest = records[v_dim],
        sum = records[v_dim + 1];
#pragma unroll 1
  for (uint32_t stage = 0; stage < kDepth; ++stage) copy(stage);
  const auto add = [&](const float* piece, const float4& of) {
    o = __fmaf_rn(*piece, of.y, o * of.x);
    sum = __fmaf_rn(of.z, of.y, sum * of.x);
  };
  uint32_t stage = 0;
#pragma unroll 1
  for (uint32_t first = 1; first < n; first += 32) {
    const float2 own = next;
    next = after_next;
    after_next = ask(first + 64);
    const MergeFactors f = merge_factors(own.x, largest);
    __syncwarp();
    memory[lane] = make_float4(f.before, f.after, own.y, 0.0f);
#pragma unroll 1
    for (uint32_t begin = 0; begin < 32 && first + begin < n; begin += kMergeBatch) {
      wait_for_copy_batches<kDepth - 1>();
      __syncwarp();
      const float* piece = pieces + stage * kMergeBatch * 32 + lane;
      const float4* factors = memory + begin;
      const uint32_t count = n - (first + begin);
      if (count >= kMergeBatch) {
#pragma unroll
        for (uint32_t j = 0; j < kMergeBatch; ++j) add(piece + j * 32, factors[j]);
      } else {
#pragma unroll 1
        for (uint32_t j = 0; j < count; ++j) add(piece + j * 32, factors[j]);
      }
      __syncwarp();
      copy(stage);
      stage = stage + 1 < kDepth ? stage + 1 : 0;
    }
  }
  return finished<kHasSinks>(args, head, o, sum, largest);
}

// Rotates the merged heads back (k8v4, k4v4). values: 256 values of whole heads; each warp rotates one head.
__device__ __forceinline__ void rotate_values_back(float* values, uint32_t v_dim) {
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp >= kMergeThreads / v_dim) return;
  float x[rotated::kRegisters], *head = values + warp * v_dim;
#pragma unroll
  for (uint32_t r = 0; r < rotated::kRegisters; ++r) x[r] = r * 32 < v_dim ? head[lane + 32 * r] : 0.0f;
  rotated::rotate_back(x, v_dim);
#pragma unroll
  for (uint32_t r = 0; r < rotated::kRegisters; ++r)
    if (r * 32 < v_dim) head[lane + 32 * r] = x[r];
}

// Does what quantize_values() does, for rows of type q8a32 or q8a256 only.
__device__ __forceinline__ void quantize_bytes(const OpArgs& args, const Eight& v, uint32_t t, uint32_t k,
                                               uint32_t at) {
  const ActRows to = q8_rows(args.buffers[binding::Attention::quantized], args.dim(symbol::Attention::rows), k);
  if (args.symbols[symbol::Attention::quantized_dtype] == kQ8A32) {
    quantize_eight<kQ8A32>(v, to, t, k, at);
    return;
  }
  const QuantizedEight q = quantized<kQ8A256>(v);
  store_eight<kQ8A256>(q, to, t, k, at);
  void* const digits = args.buffers[binding::Attention::digits];
  if (digits != nullptr && at < k)
    store_digits(q, digits, args.symbols[symbol::Attention::digit_columns], t, k, at / 256);
}

// Merges the records that attention has left for each chunk. If `quantized` is bound it also quantizes the rows; heads
// then consist of whole 32 values, and a workgroup has 256 values of a row.
// - is_runs_only (a symbol): only tokens of runs (attention.cuh) have records
// - kDepth: as in merged(); 0 if no head has more than kMergeFew chunks
// - kHasFixed: `quantized` may be q16a256. A kernel without the code for it starts sooner
// - kHasSinks: heads have sinks
// Grid: (tokens, groups of 8 pieces of heads). Each warp merges one piece of up to 32 values. Shared memory:
// merge_bytes.
template <bool kIsRotated, uint32_t kDepth, bool kHasFixed = true, bool kHasSinks = false>
__device__ __forceinline__ void merge(const OpArgs& args) {
  ZRT_DYNAMIC_SHARED(uint4, memory);
  __shared__ __align__(16) float values[kMergeThreads];
  let_next_start();
  const auto c = args.constants<push::FlashAttn>();
  const uint32_t t = blockIdx.x, lane = threadIdx.x % 32, v_dim = c.v_head_dim,
                 floats = args.symbols[symbol::Attention::floats];
  const bool is_token = has_row(args, t);
  wait_for_places(args);
  const uint32_t pos = is_token ? static_cast<uint32_t>(args.buffer<const int32_t>(binding::Attention::pos)[t]) : 0;
  wait_for_inputs();
  if (!is_token || (args.symbols[symbol::Attention::is_runs_only] != 0 && !is_in_run(args, c.window, t))) return;
  const uint32_t pieces = (v_dim + 31) / 32, piece = blockIdx.y * 8 + threadIdx.x / 32, head = piece / pieces,
                 i = piece % pieces * 32 + lane;
  float value = 0.0f;
  const bool has_value = head < c.n_heads && i < v_dim;
  const uint64_t row = static_cast<uint64_t>(t) * c.n_heads + head;
  if (head < c.n_heads) {
    const uint32_t first = first_seen(c.window, pos) / kChunk, n = pos / kChunk + 1 - first;
    const float* records =
        static_cast<const float*>(args.scratch) + (row * args.symbols[symbol::Attention::chunks] + first) * floats;
    if (kDepth == 0 || n <= kMergeFew) {
      value = merged_few<kHasSinks>(args, head, records, floats, n, v_dim, i - lane);
    } else if constexpr (kDepth > 0) {
      auto* own = reinterpret_cast<uint8_t*>(memory) +
                  threadIdx.x / 32 * merge_bytes_of_warp(args.symbols[symbol::Attention::chunks], kDepth);
      value =
          merged<kDepth, kHasSinks>(args, head, reinterpret_cast<float4*>(own), records, floats, n, v_dim, i - lane);
    }
  }
  if constexpr (kIsRotated) {
    values[threadIdx.x] = value;
    __syncthreads();
    rotate_values_back(values, v_dim);
    __syncthreads();
    value = values[threadIdx.x];
  }
  if (has_value) args.buffer<float>(binding::Attention::y)[row * v_dim + i] = value;
  if (args.buffers[binding::Attention::quantized] == nullptr) return;
  if constexpr (!kIsRotated) {
    values[threadIdx.x] = value;
    __syncthreads();
  }
  if (threadIdx.x >= 32) return;
  const uint32_t at = first_of_eight();
  const Eight v = load_eight(values, at, 256);
  if constexpr (kHasFixed)
    quantize_values(args, v, t, c.n_heads * v_dim, blockIdx.y * 256 + at);
  else
    quantize_bytes(args, v, t, c.n_heads * v_dim, blockIdx.y * 256 + at);
}

extern "C" __global__ void __launch_bounds__(256, 4) flash_attn_merge_few(const __grid_constant__ OpArgs args) {
  merge<false, 0, false>(args);
}
extern "C" __global__ void __launch_bounds__(256, 4) flash_attn_merge_few_fixed(const __grid_constant__ OpArgs args) {
  merge<false, 0>(args);
}
extern "C" __global__ void __launch_bounds__(256, 4) flash_attn_merge_rotated_few(const __grid_constant__ OpArgs args) {
  merge<true, 0>(args);
}
extern "C" __global__ void __launch_bounds__(256) flash_attn_merge(const __grid_constant__ OpArgs args) {
  merge<false, kMergeDepth>(args);
}
extern "C" __global__ void __launch_bounds__(256) flash_attn_merge_rotated(const __grid_constant__ OpArgs args) {
  merge<true, kMergeDepth>(args);
}
extern "C" __global__ void __launch_bounds__(256) flash_attn_merge_small(const __grid_constant__ OpArgs args) {
  merge<false, kMergeSmallDepth>(args);
}
extern "C" __global__ void __launch_bounds__(256) flash_attn_merge_rotated_small(const __grid_constant__ OpArgs args) {
  merge<true, kMergeSmallDepth>(args);
}
extern "C" __global__ void __launch_bounds__(256) flash_attn_merge_sinks(const __grid_constant__ OpArgs args) {
  merge<false, kMergeSmallDepth, true, true>(args);
}
extern "C" __global__ void __launch_bounds__(256) flash_attn_merge_rotated_sinks(const __grid_constant__ OpArgs args) {
  merge<true, kMergeSmallDepth, true, true>(args);
}
