// FLASH_ATTN and FLASH_ATTN_BATCHED in steps with few tokens, with the same bits as flash_attn.cu. K of a chunk is
// copied to shared memory while the chunk before is summed up, and V while the chunk's scores are computed.
// Grid: (tokens, kv heads, parts). A workgroup computes one token and the query heads of one kv head, over every
// gridDim.z-th chunk. Its work is divided like this:
// - scores: a half warp computes a position. Its GPU lanes are the 16 lanes of the order of sums, with their values of
//   q in registers
// - weights: a warp computes a head
// - V: a thread computes two values of one or two heads, over the positions in order
// Rows of K and V have room for 16 * kSteps values. If heads are narrower, q and K are padded with zeros, which change
// no sum.
// With one part, the workgroup merges its chunks, and quantizes the result if `quantized` is bound (q8 rows, which must
// not share memory with q). With several parts, each chunk leaves a record for flash_attn_merge. If run_tokens is not
// 0, the tokens of runs are skipped, because flash_attn_runs.cu computes them. With kRope the kernel also does the
// RMS_NORM_FUSED_ROPE_KV_WRITE before FLASH_ATTN; it always has several parts then.
#include "kernels/cuda/token_rows.cuh"

using namespace zinc_rt::cuda;

constexpr uint32_t kThreads = kAttendThreads, kHalfWarps = kThreads / 16;
constexpr int kHeads = 4;  // heads that share a pass over K and V

// Computes the products of q and K of kN heads at the positions of a range, and at up to 15 positions beside it that
// nobody reads.
template <class Cell, int kSteps, int kN>
__device__ __forceinline__ void score(const uint8_t* k_tile, const float (&q)[kHeads][kSteps], Range range,
                                      float (&scores)[kHeads][kChunk]) {
  constexpr uint32_t kPitch = attend_k_pitch(16 * kSteps, Cell::kBytes);
  const uint32_t lane = threadIdx.x % 16;
#pragma unroll 2
  for (uint32_t page = range.begin / kHalfWarps; page * kHalfWarps < range.end; ++page) {
    const uint32_t at = page * kHalfWarps + threadIdx.x / 16;
    float v[kN] = {};
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      const float k = Cell::at(k_tile + at * kPitch, i * 16 + lane);
#pragma unroll
      for (int h = 0; h < kN; ++h) v[h] = __fmaf_rn(k, q[h][i], v[h]);
    }
    // The fold over 16 lanes. While a lane has the sums of several heads, it keeps half of them and gives the others
    // away.
    int n = kN;
#pragma unroll
    for (int width = 8; width > 0; width /= 2) {
      n = (n + 1) / 2;
      const bool is_upper = (lane & width) != 0;
#pragma unroll
      for (int h = 0; h < n; ++h) {
        const bool has_two = kN * width > 8;
        const float keep = has_two && is_upper ? v[h + (has_two ? n : 0)] : v[h],
                    give = has_two && !is_upper ? v[h + (has_two ? n : 0)] : v[h];
        v[h] = keep + __shfl_xor_sync(0xFFFFFFFFu, give, width);
      }
    }
    if (lane % (16 / kN) == 0) scores[lane / (16 / kN)][at] = v[0];
  }
}

// Computes o for two neighbouring values of V (pair number `pair`) and for kN heads, whose weights begin at `weights`.
template <class Cell, int kSteps, int kN>
__device__ __forceinline__ void weigh(const uint8_t* v_tile, uint32_t pair, const float (*weights)[kChunk], Range range,
                                      float2 (&o)[kN]) {
  constexpr uint32_t kPitch = 16 * kSteps * Cell::kBytes;
  const auto add = [&](int h, float weight, float2 v) {
    o[h].x = __fmaf_rn(weight, v.x, o[h].x);
    o[h].y = __fmaf_rn(weight, v.y, o[h].y);
  };
  const auto one = [&](uint32_t at) {
    const float2 v = Cell::pair(v_tile + at * kPitch, pair);
#pragma unroll
    for (int h = 0; h < kN; ++h) add(h, weights[h][at], v);
  };
#pragma unroll
  for (int h = 0; h < kN; ++h) o[h] = make_float2(0.0f, 0.0f);
  uint32_t at = range.begin;
#pragma unroll 1
  for (; at < range.end && at % 4 != 0; ++at) one(at);
#pragma unroll 4
  for (; at + 4 <= range.end; at += 4) {
    float2 v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = Cell::pair(v_tile + (at + i) * kPitch, pair);
#pragma unroll
    for (int h = 0; h < kN; ++h) {
      const float4 w = *reinterpret_cast<const float4*>(weights[h] + at);
      add(h, w.x, v[0]), add(h, w.y, v[1]), add(h, w.z, v[2]), add(h, w.w, v[3]);
    }
  }
#pragma unroll 1
  for (; at < range.end; ++at) one(at);
}

// The static shared memory of a workgroup.
struct Shared {
  float weights[kHeads][kChunk];  // before weigh_scores(): the products of q and K
  // Factors by which the merged o and sum (before), and those of the chunk (after), are multiplied when the chunk is
  // merged.
  float before[kHeads], after[kHeads];
};

// Turns the products of q and K of a head into weights, exp(score - maximum), by a warp. All lanes get the maximum.
__device__ __forceinline__ float weigh_scores(const push::FlashAttn& c, float (&scores)[kChunk], Range range) {
  const uint32_t lane = threadIdx.x % 32;
  float v[kChunk / 32], most = -__int_as_float(0x7f800000);
#pragma unroll
  for (uint32_t i = 0; i < kChunk / 32; ++i) {
    v[i] = scores[lane + 32 * i] * c.scale;
    if (c.softcap > 0.0f) v[i] = c.softcap * exact::tanh(v[i] * exact::rcp(c.softcap));
    if (range.has(lane + 32 * i) && v[i] > most) most = v[i];
  }
#pragma unroll
  for (int w = 16; w > 0; w /= 2) {
    const float other = __shfl_xor_sync(0xFFFFFFFFu, most, w);
    most = other > most ? other : most;
  }
#pragma unroll
  for (uint32_t i = 0; i < kChunk / 32; ++i)
    if (range.has(lane + 32 * i)) scores[lane + 32 * i] = exact::exp(v[i] - most);
  return most;
}

// Returns the sum of a head's weights, by a half warp.
__device__ __forceinline__ float sum_of(const float (&weights)[kChunk], Range range) {
  const uint32_t lane = threadIdx.x % 16;
  float w[kChunk / 16], sum = 0.0f;
#pragma unroll
  for (uint32_t i = 0; i < kChunk / 16; ++i) w[i] = weights[lane + 16 * i];
#pragma unroll
  for (uint32_t i = 0; i < kChunk / 16; ++i)
    if (range.has(lane + 16 * i)) sum = sum + w[i];
  return fold_half_warp(sum);
}

// The kernel for heads of up to 16 * kSteps values. kRope: it also computes q, K and V of its token (token_rows.cuh),
// from `rope`.
template <class Cell, int kSteps, bool kRope = false>
__device__ __forceinline__ void attend_staged(const OpArgs& args, const RopeArgs& rope = {}) {
  constexpr uint32_t kWidth = 16 * kSteps, kKPitch = attend_k_pitch(kWidth, Cell::kBytes),
                     kVPitch = kWidth * Cell::kBytes;
  constexpr int kVectors = kVPitch / 16;
  ZRT_DYNAMIC_SHARED(uint4, tiles);
  __shared__ __align__(16) Shared shared;
  const bool has_runs = args.symbols[symbol::Attention::run_tokens] > 0;
  if (!has_runs) let_next_start();
  const auto c = args.constants<push::FlashAttn>();
  const uint32_t t = blockIdx.x, kv_head = blockIdx.y, tid = threadIdx.x, warp = tid / 32;
  TokenRows<Cell, kSteps> rows(rope, c, t);
  if constexpr (kRope) rows.ask_norms();
  const int32_t *positions = args.buffer<const int32_t>(binding::Attention::pos) + t,
                *slots = args.buffer<const int32_t>(binding::Attention::slot) + t;
  const bool is_token = has_row(args, t);
  wait_for_places(args);
  const uint32_t pos = is_token ? static_cast<uint32_t>(*positions) : kAbsent,
                 slot = is_token ? static_cast<uint32_t>(*slots) : 0;
  if constexpr (kRope) rows.ask_turns(pos);
  const int32_t* pages = args.buffer<const int32_t>(binding::Attention::page_table) +
                         static_cast<uint64_t>(slot) * args.symbols[symbol::Attention::m];
  const bool is_whole = !kRope && gridDim.z == 1;
  const uint32_t first = pos == kAbsent ? 0 : first_seen(c.window, pos), first_chunk = first / kChunk,
                 last_chunk = pos / kChunk, n_chunks = last_chunk - first_chunk + 1;
  // If there are fewer chunks than multiprocessors, two workgroups share a chunk: each computes half of the heads.
  const uint32_t group = args.symbols[symbol::Attention::group], z = blockIdx.z;
  const bool is_shared = 2 * n_chunks <= args.symbols[symbol::Attention::parts_at_once], is_second = z >= n_chunks;
  const uint32_t half = (group + 1) / 2, first_head = is_second ? half : 0,
                 end_head = is_shared && !is_second ? half : group;
  const bool has_work = pos != kAbsent && (!is_second || (is_shared && z < 2 * n_chunks)) && first_head < end_head;
  auto* k_tile = reinterpret_cast<uint8_t*>(tiles);
  uint8_t* v_tile = k_tile + kChunk * kKPitch;
  // total: if chunks are merged here, o, maximum and sum of each head. own_q: if they are not, the same memory holds
  // the heads of q that are computed here.
  float* total = reinterpret_cast<float*>(v_tile + kChunk * kVPitch);
  float* const own_q = total;
  const uint32_t total_pitch = c.v_head_dim + 2;
  const auto range_of = [&](uint32_t chunk) {
    return Range{max(chunk * kChunk, first) - chunk * kChunk, min(kChunk, pos + 1 - chunk * kChunk)};
  };
  using ChunkCopies = Copies<kThreads, kVectors>;
  const auto copies_of = [&](uint32_t chunk, Range range) { return ChunkCopies(pages + chunk * (kChunk / 16), range); };
  const auto stage_k = [&](const ChunkCopies& copies) {
    copies.template start<true>(
        k_tile, kKPitch, args.buffer<const uint8_t>(binding::Attention::kv_k) + kv_head * c.head_dim * Cell::kBytes,
        args.symbols[symbol::Attention::pitch_kv_k], c.n_kv_heads * c.head_dim * Cell::kBytes,
        c.head_dim * Cell::kBytes / 16);
    end_copy_batch();
  };
  const auto stage_v = [&](const ChunkCopies& copies) {
    copies.template start<true>(
        v_tile, kVPitch, args.buffer<const uint8_t>(binding::Attention::kv_v) + kv_head * c.v_head_dim * Cell::kBytes,
        args.symbols[symbol::Attention::pitch_kv_v], c.n_kv_heads * c.v_head_dim * Cell::kBytes,
        c.v_head_dim * Cell::kBytes / 16);
    end_copy_batch();
  };
  uint32_t chunk = first_chunk + (is_second ? z - n_chunks : z);
  // If the token is the only one of its slot, all other rows of the cache were written in earlier steps. So their
  // copies start before the inputs are ready.
  const bool is_only = kRope || args.symbols[symbol::Attention::rows] == 1;
  const uint32_t own_row = chunk == last_chunk ? pos % kChunk : kAbsent;
  const auto stage_others = [&] {
    Range range = range_of(chunk);
    range.end = min(range.end, own_row);
    const ChunkCopies copies = copies_of(chunk, range);
    stage_k(copies);
    stage_v(copies);
  };
  if (is_only && has_work) stage_others();
  wait_for_inputs();
  if (has_runs) let_next_start();  // the next launch does not wait for inputs that this kernel has waited for
  if (!has_work || is_in_run(args, c.window, t)) return;
  if constexpr (kRope) rows.ask_v(kv_head);
  float q[kHeads][kSteps];
  float* const q_row = args.buffer<float>(binding::Attention::q) + static_cast<uint64_t>(t) * c.n_heads * c.head_dim;
  const auto load_q = [&](uint32_t h0) {
    const float* of = (kRope ? own_q + h0 * c.head_dim : q_row + (kv_head * group + h0) * c.head_dim) + tid % 16;
#pragma unroll
    for (int h = 0; h < kHeads; ++h, of += c.head_dim)
#pragma unroll
      for (uint32_t i = 0; i < kSteps; ++i)
        q[h][i] = h0 + h < end_head && i * 16 + tid % 16 < c.head_dim ? of[i * 16] : 0.0f;
  };
  const bool is_own = kRope && own_row != kAbsent;  // the token's own chunk, whose row is not in the cache yet
  if (!is_only) {
    const ChunkCopies copies = copies_of(chunk, range_of(chunk));
    stage_k(copies);
    stage_v(copies);
  } else if (!kRope && own_row != kAbsent && tid < 2 * kVectors) {
    // The row is read directly and not by an asynchronous copy, because K would have to wait for V, whose copies were
    // issued before.
    const bool is_k = tid < kVectors;
    const uint32_t at = tid % kVectors, bytes = (is_k ? c.head_dim : c.v_head_dim) * Cell::kBytes;
    uint4 v = make_uint4(0, 0, 0, 0);
    if (at * 16 < bytes)
      v = *reinterpret_cast<const uint4*>(
          args.buffer<const uint8_t>(is_k ? binding::Attention::kv_k : binding::Attention::kv_v) +
          static_cast<uint64_t>(pages[pos / 16]) *
              args.symbols[is_k ? symbol::Attention::pitch_kv_k : symbol::Attention::pitch_kv_v] +
          (pos % 16 * c.n_kv_heads + kv_head) * bytes + at * 16);
    *reinterpret_cast<uint4*>((is_k ? k_tile + own_row * kKPitch : v_tile + own_row * kVPitch) + at * 16) = v;
  }
  if constexpr (kRope) {
    // If this workgroup has a later chunk, it reads that from the cache, where it has written the token's cells itself.
    const bool writes = !is_second && (last_chunk - chunk) % gridDim.z == 0;
    const auto page = static_cast<uint64_t>(pages[pos / 16]);
    const auto cell = [&](int cache, uint32_t pitch, uint32_t width) {
      return writes ? args.buffer<uint8_t>(cache) + page * pitch + pos % 16 * (c.n_kv_heads * width * Cell::kBytes)
                    : nullptr;
    };
    const uint32_t row = pos % kChunk;
    rows.make({own_q, chunk == first_chunk ? q_row + kv_head * group * c.head_dim : nullptr, first_head, end_head,
               is_own ? k_tile + row * kKPitch : nullptr, is_own ? v_tile + row * kVPitch : nullptr,
               cell(binding::Attention::kv_k, args.symbols[symbol::Attention::pitch_kv_k], c.head_dim),
               cell(binding::Attention::kv_v, args.symbols[symbol::Attention::pitch_kv_v], c.v_head_dim),
               shared.weights[0]});
  }
  if constexpr (!kRope) load_q(first_head);
  wait_for_copy_batches<1>();
  __syncthreads();
  if constexpr (kRope) load_q(first_head);
  for (;;) {
    const Range range = range_of(chunk);
    const uint32_t next = chunk + gridDim.z;
    const bool is_first = chunk == first_chunk, is_last = next > last_chunk;
    for (uint32_t h0 = first_head; h0 < end_head; h0 += kHeads) {
      const uint32_t n = min(static_cast<uint32_t>(kHeads), end_head - h0);
      if (end_head - first_head > kHeads) load_q(h0);
      if (n == 1)
        score<Cell, kSteps, 1>(k_tile, q, range, shared.weights);
      else if (n == 2)
        score<Cell, kSteps, 2>(k_tile, q, range, shared.weights);
      else
        score<Cell, kSteps, 4>(k_tile, q, range, shared.weights);
      __syncthreads();
      if (h0 + kHeads >= end_head) {
        if (is_last)
          end_copy_batch();
        else
          stage_k(copies_of(next, range_of(next)));
      }
      const auto record_of = [&](uint32_t h) {
        return record_at(args, static_cast<uint64_t>(t) * c.n_heads + kv_head * group + h0 + h, chunk);
      };
      if (warp < n) {
        const float most = weigh_scores(c, shared.weights[warp], range);
        if (tid % 32 == 0) {
          float* of = is_whole ? total + (h0 + warp) * total_pitch + c.v_head_dim : record_of(warp) + c.v_head_dim;
          const float was = is_whole && !is_first ? *of : most, now = most > was ? most : was;
          shared.before[warp] = exact::exp(was - now), shared.after[warp] = exact::exp(most - now);
          *of = now;
        }
      }
      if (h0 == first_head) {  // waits for V, but not for the next K
        if (h0 + kHeads >= end_head)
          wait_for_copy_batches<1>();
        else
          wait_for_copy_batches<0>();
      }
      __syncthreads();
      // The last half warps add up the weights, and all threads add up V.
      const uint32_t own = tid / 16 - (kHalfWarps - n);
      if (own < n) {
        const float sum = sum_of(shared.weights[own], range);
        if (tid % 16 == 0) {
          float* of = (is_whole ? total + (h0 + own) * total_pitch : record_of(own)) + c.v_head_dim + 1;
          *of = is_whole && !is_first ? __fmaf_rn(sum, shared.after[own], *of * shared.before[own]) : sum;
        }
      }
      const auto keep = [&](uint32_t h, uint32_t pair, float2 o) {
        if (!is_whole) {
          reinterpret_cast<float2*>(record_of(h))[pair] = o;
          return;
        }
        float* of = total + (h0 + h) * total_pitch + 2 * pair;
        of[0] = is_first ? o.x : __fmaf_rn(o.x, shared.after[h], of[0] * shared.before[h]);
        of[1] = is_first ? o.y : __fmaf_rn(o.y, shared.after[h], of[1] * shared.before[h]);
      };
      const uint32_t pairs = c.v_head_dim / 2;
      if (pairs * n <= kThreads / 2) {
        for (uint32_t i = tid; i < pairs * n; i += kThreads) {
          float2 o[1];
          weigh<Cell, kSteps, 1>(v_tile, i % pairs, shared.weights + i / pairs, range, o);
          keep(i / pairs, i % pairs, o[0]);
        }
      } else {
        for (uint32_t i = tid; i < pairs * ((n + 1) / 2); i += kThreads) {
          const uint32_t h = i / pairs * 2;
          float2 o[2];
          weigh<Cell, kSteps, 2>(v_tile, i % pairs, shared.weights + h, range, o);
          keep(h, i % pairs, o[0]);
          if (h + 1 < n) keep(h + 1, i % pairs, o[1]);
        }
      }
      if (h0 + kHeads < end_head) __syncthreads();
    }
    if (is_last) break;
    wait_for_copy_batches<0>();
    __syncthreads();
    stage_v(copies_of(next, range_of(next)));
    chunk = next;
  }
  if (!is_whole) return;
  __syncthreads();
  write_row<kThreads>(args, c, total);
}

extern "C" __global__ void __launch_bounds__(kThreads, 3) flash_attn_f16_64(const __grid_constant__ OpArgs args) {
  attend_staged<F16Cell, 4>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 3) flash_attn_f16_128(const __grid_constant__ OpArgs args) {
  attend_staged<F16Cell, 8>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 1) flash_attn_f16_256(const __grid_constant__ OpArgs args) {
  attend_staged<F16Cell, 16>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 3) flash_attn_f32_64(const __grid_constant__ OpArgs args) {
  attend_staged<F32Cell, 4>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 1) flash_attn_f32_128(const __grid_constant__ OpArgs args) {
  attend_staged<F32Cell, 8>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 3) flash_attn_1_f16_64(const __grid_constant__ TokenArgs args) {
  attend_staged<F16Cell, 4, true>(args.attention, args.rope);
}
extern "C" __global__ void __launch_bounds__(kThreads, 3) flash_attn_1_f32_64(const __grid_constant__ TokenArgs args) {
  attend_staged<F32Cell, 4, true>(args.attention, args.rope);
}
extern "C" __global__ void __launch_bounds__(kThreads, 3) flash_attn_1_f16_128(const __grid_constant__ TokenArgs args) {
  attend_staged<F16Cell, 8, true>(args.attention, args.rope);
}
extern "C" __global__ void __launch_bounds__(kThreads, 1) flash_attn_1_f32_128(const __grid_constant__ TokenArgs args) {
  attend_staged<F32Cell, 8, true>(args.attention, args.rope);
}
