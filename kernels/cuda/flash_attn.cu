// FLASH_ATTN and FLASH_ATTN_BATCHED, in the order of docs/arithmetic.md, rule 5. A workgroup has a query token, a kv
// head with its query heads, and every gridDim.z-th chunk of 128 positions. With one part in z it merges the chunks as
// it goes. With several, each chunk leaves a record in scratch memory (o, maximum, sum), and flash_attn_merge merges
// them in order. The bits are the same for any number of parts.
// This is the kernel for caches and heads of any kind. flash_attn_staged.cu takes those that lie in whole vectors,
// flash_attn_runs.cu and flash_attn_tile.cu steps with several and with many tokens of a slot. Their operands:
// binding::Attention, symbol::Attention (op_args.h).
#include "kernels/cuda/attention.cuh"

using namespace zinc_rt::cuda;

constexpr uint32_t kHeads = 4;  // that share a pass over K and V

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
  // The queries of the group's heads, padded to 16 values; then, where chunks are merged here, o, maximum and sum.
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
      // Narrow heads: several teams of threads share the heads out among themselves.
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

// Of a chunk of a head: what o and the sum so far are multiplied by, what the chunk's are, and its sum.
struct __align__(16) MergeFactors {
  float before, after, sum, unused;
};
constexpr uint32_t kMergeWarps = 8, kFactors = 128;  // of a workgroup; chunks of a head at a time

// The lane's value of 32 records on their way, of which count are there. kFloats: of a record, 0 where only the launch
// knows: addresses that are known cost no instructions.
template <uint32_t kFloats>
__device__ __forceinline__ void ask_values(float (&o)[32], const float* of, uint32_t floats, uint32_t count) {
  const uint32_t pitch = kFloats == 0 ? floats : kFloats;
  if (count >= 32) {
#pragma unroll
    for (uint32_t j = 0; j < 32; ++j) o[j] = of[j * pitch];
  } else {
#pragma unroll
    for (uint32_t j = 0; j < 32; ++j) o[j] = j < count ? of[j * pitch] : 0.0f;
  }
}
// Adds 32 chunks to a value and the sum, or count of them.
struct Merged {
  float o, sum;

  __device__ __forceinline__ void add(float value, const MergeFactors& f) {
    o = __fmaf_rn(value, f.after, o * f.before);
    sum = __fmaf_rn(f.sum, f.after, sum * f.before);
  }
  __device__ __forceinline__ void add(const float (&values)[32], const MergeFactors* factors, uint32_t count) {
    if (count >= 32) {
#pragma unroll
      for (uint32_t j = 0; j < 32; ++j) add(values[j], factors[j]);
    } else {
#pragma unroll
      for (uint32_t j = 0; j < 32; ++j)
        if (j < count) add(values[j], factors[j]);
    }
  }
};

// Factors of chunks [first, first + kFactors) of a head's n. The maximum before a chunk is the largest so far, so that
// all are known at once: the warps of a head have each 32nd chunk's maximum, and make those of every n_warps-th 32.
__device__ __forceinline__ void make_factors(MergeFactors* factors, const float* records, uint32_t floats,
                                             uint32_t v_dim, uint32_t first, uint32_t n, uint32_t warp,
                                             uint32_t n_warps, float& largest) {
  const uint32_t lane = threadIdx.x % 32;
  float most[kFactors / 32];
#pragma unroll
  for (uint32_t g = 0; g < kFactors / 32; ++g) {
    const uint32_t at = first + g * 32 + lane;
    most[g] = at < n ? records[static_cast<uint64_t>(at) * floats + v_dim] : -__int_as_float(0x7f800000);
  }
#pragma unroll
  for (uint32_t g = 0; g < kFactors / 32; ++g) {
    if (first + g * 32 >= n) break;
    float upto = most[g];
#pragma unroll
    for (int w = 1; w < 32; w *= 2) {
      const float other = __shfl_up_sync(0xFFFFFFFFu, upto, w);
      if (lane >= w) upto = upto > other ? upto : other;
    }
    float was = __shfl_up_sync(0xFFFFFFFFu, upto, 1);
    was = lane == 0 || largest > was ? largest : was;
    const float now = most[g] > was ? most[g] : was;
    largest = __shfl_sync(0xFFFFFFFFu, now, 31);
    const uint32_t at = first + g * 32 + lane;
    if (g % n_warps == warp && at < n)
      factors[g * 32 + lane] = {exact::exp(was - now), exact::exp(most[g] - now),
                                records[static_cast<uint64_t>(at) * floats + v_dim + 1], 0.0f};
  }
}

// The lane's value of a head merged out of the records of its n chunks. All warps of the workgroup come; each has a
// head's piece.
template <uint32_t kFloats>
__device__ __forceinline__ Merged merge_records(MergeFactors* factors, const float* records, uint32_t floats,
                                                uint32_t v_dim, uint32_t i, uint32_t n, uint32_t warp,
                                                uint32_t n_warps) {
  const float* own = records + i;
  Merged all{own[0], records[v_dim + 1]};
  float largest = records[v_dim], even[32], odd[32];
  const auto ask = [&](float(&to)[32], uint32_t at) {
    if (at < n) ask_values<kFloats>(to, own + static_cast<uint64_t>(at) * floats, floats, n - at);
  };
  ask(even, 1);
#pragma unroll 1
  for (uint32_t at = 1; at < n; at += kFactors) {
    make_factors(factors, records, floats, v_dim, at, n, warp, n_warps, largest);
    __syncthreads();
#pragma unroll 1
    for (uint32_t of = 0; of < kFactors && at + of < n; of += 64) {
      ask(odd, at + of + 32);
      all.add(even, factors + of, n - at - of);
      ask(even, at + of + 64);
      if (at + of + 32 < n) all.add(odd, factors + of + 32, n - at - of - 32);
    }
    __syncthreads();
  }
  return all;
}

// Merges what attention's kernels left of each chunk, and quantizes the rows if `quantized` is bound: then heads are
// whole 32 values, and a workgroup has 256 of a row. With is_runs_only only tokens of runs (attention.cuh) have left
// records. Grid: tokens, and 8 pieces of a head, 32 values or fewer, of which each warp has one.
extern "C" __global__ void __launch_bounds__(256, 2) flash_attn_merge(const __grid_constant__ OpArgs args) {
  __shared__ __align__(16) float values[256];
  __shared__ __align__(16) MergeFactors factors[kMergeWarps][kFactors];  // of a head: at its first warp
  let_next_start();
  const auto c = args.constants<push::FlashAttn>();
  const uint32_t t = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32, v_dim = c.v_head_dim,
                 floats = args.symbols[symbol::Attention::floats];
  const bool is_token = has_row(args, t);
  wait_for_places(args);
  const uint32_t pos = is_token ? static_cast<uint32_t>(args.buffer<const int32_t>(binding::Attention::pos)[t]) : 0;
  wait_for_inputs();
  if (!is_token || (args.symbols[symbol::Attention::is_runs_only] != 0 && !is_in_run(args, c.window, t))) return;
  const uint32_t pieces = (v_dim + 31) / 32, first_piece = blockIdx.y * kMergeWarps, piece = first_piece + warp,
                 head = piece / pieces, i = piece % pieces * 32 + lane;
  const bool has_head = head < c.n_heads, has_value = has_head && i < v_dim;
  // The warps of this workgroup that have the head.
  const uint32_t first_warp = max(head * pieces, first_piece) - first_piece,
                 n_warps = min((head + 1) * pieces - first_piece, kMergeWarps) - first_warp;
  const uint32_t first = first_seen(c.window, pos) / kChunk, n = pos / kChunk + 1 - first;
  const uint64_t row = static_cast<uint64_t>(t) * c.n_heads + (has_head ? head : 0);
  const float* records =
      static_cast<const float*>(args.scratch) + (row * args.symbols[symbol::Attention::chunks] + first) * floats;
  // Without a head or a value the first of all is merged and left alone.
  const auto merge = [&](auto floats_of) {
    return merge_records<floats_of>(factors[has_head ? first_warp : warp], records, floats, v_dim, has_value ? i : 0, n,
                                    has_head ? warp - first_warp : 0, has_head ? n_warps : 1);
  };
  using std::integral_constant;
  const Merged of = floats == 132 ? merge(integral_constant<uint32_t, 132>{}) : merge(integral_constant<uint32_t, 0>{});
  const float value = has_value ? of.o * exact::rcp(of.sum) : 0.0f;
  if (has_value) args.buffer<float>(binding::Attention::y)[row * v_dim + i] = value;
  if (args.buffers[binding::Attention::quantized] == nullptr) return;
  values[threadIdx.x] = value;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  const uint32_t at = first_of_eight();
  quantize_values(args, load_eight(values, at, 256), t, c.n_heads * v_dim, blockIdx.y * 256 + at);
}
