// Computes FLASH_ATTN and FLASH_ATTN_BATCHED over caches of 16-bit integers, for steps of few tokens. The bits are
// those of kernels/cpu/flash_attn.cpp.
// Grid: (tokens, kv heads, parts). Each workgroup of four warps computes the query heads of one kv head for one token,
// and takes every gridDim.z-th chunk of the token's history. In the products of tensor cores, codes of K and V are the
// rows, and digits of q or of weights are the columns (integer_chunk.cuh). For each chunk of 128 tokens:
//   Scores: each warp computes those of 32 tokens, for up to 4 kTiles heads at a time.
//   Weights: each warp makes the digits of one head's weights at a time. V is loaded meanwhile.
//   Values: each warp computes 32 values of the heads, of 128 at a time.
// Codes go from the cache directly to registers. While one workgroup waits for them, others on the same multiprocessor
// compute.
// If there is one part, the workgroup merges its chunks, and quantizes the result if `quantized` is bound. If there are
// several, each chunk leaves a record, and flash_attn_merge merges the records. The kernels flash_attn_1_* also compute
// the RMS_NORM_FUSED_ROPE_KV_WRITE before FLASH_ATTN; they always have several parts.
#include "kernels/cuda/integer_chunk.cuh"
#include "kernels/cuda/rope_head.cuh"

using namespace zinc_rt::cuda;

template <uint32_t kTiles>  // kTiles: groups of four heads that share a pass over K and V
struct Shared {
  static constexpr uint32_t kHeads = 4 * kTiles;
  float scores[kHeads][kChunk];  // without the scale of q
  Factors factors[kHeads];
  float d[kHeads];               // scales of the weights' codes
  uint2 weights[kTiles][4][32];  // digits, laid out for products of 32 tokens
};

// Makes digits of q. Each warp converts one head at a time.
__device__ __forceinline__ void quantize_q(const push::FlashAttn& c, const float* q_row, uint32_t n_heads, uint2* q,
                                           float* scales) {
  for (uint32_t h = threadIdx.x / 32; h < (n_heads + 3) / 4 * 4; h += kWarps)
    quantize_head(c, h < n_heads ? q_row + h * c.head_dim : nullptr, h, q, scales);
}

// Computes RMS_NORM_FUSED_ROPE_KV_WRITE for a token that is the only one of its slot in the step, inside its attention.
// Each workgroup makes its own heads of q, as digits. The workgroup that has the chunk with the token's own position
// also makes the token's cells of K and V. Each half warp computes a head; then its warp converts the head to codes.
struct OwnHeads {
  static constexpr uint32_t kMost = 128, kHalves = 2 * kWarps;  // the most values of a head; half warps of a workgroup

  const RopeArgs& rope;
  const push::FlashAttn& c;
  uint32_t token, kv_head, group, pos;
  bool has_cells;  // whether this workgroup makes the cells of K and V; these come before the heads of q
  HalfWarpHead<kMost / 16> head;

  enum class Of : uint8_t { kKey, kValue, kQuery, kNothing };
  __device__ __forceinline__ uint32_t n_cells() const { return has_cells ? 2 : 0; }
  __device__ __forceinline__ Of of(uint32_t task) const {
    if (task < n_cells()) return task == 0 ? Of::kKey : Of::kValue;
    return task < n_cells() + group ? Of::kQuery : Of::kNothing;
  }
  __device__ __forceinline__ uint32_t width(Of what) const {
    return what == Of::kNothing ? 0 : what == Of::kValue ? c.v_head_dim : c.head_dim;
  }
  // Loads what does not depend on the step's inputs: the weight of the norm, and RoPE's angles.
  __device__ __forceinline__ void ask(uint32_t task) {
    const Of what = of(task);
    const bool is_turned = what == Of::kKey || what == Of::kQuery;
    head.ask_norm(!is_turned ? nullptr : what == Of::kKey ? rope.k_norm : rope.q_norm, c.head_dim);
    head.ask_turns(!is_turned || pos < rope.table_rows, rope.table + static_cast<uint64_t>(pos) * rope.n_rot,
                   is_turned ? rope.n_rot : 0);
  }
  // Makes the heads. REQUIRES: each half warp has called ask() with its number before. q_out: null, or where heads of q
  // are written as floats. All threads may read the results when it returns.
  __device__ __forceinline__ void make(uint2* q, float* scales, float* q_out, uint8_t* k_page, uint8_t* v_page) {
    __shared__ __align__(16) float rows[kHalves][kMost];
    const uint32_t half = threadIdx.x / 16, lane = threadIdx.x % 32, n_tasks = n_cells() + (group + 3) / 4 * 4;
#pragma unroll 1
    for (uint32_t first = 0; first < n_tasks; first += kHalves) {
      if (first > 0) ask(first + half);
      const Of own = of(first + half);
      const uint32_t h = first + half - n_cells();
      head.ask_values(own == Of::kQuery
                          ? rope.q + (static_cast<uint64_t>(token) * c.n_heads + kv_head * group + h) * c.head_dim
                          : (own == Of::kKey ? rope.k : rope.v) +
                                (static_cast<uint64_t>(token) * c.n_kv_heads + kv_head) * width(own),
                      width(own));
      head.make(rows[half], rope.eps, rope.neox != 0);
#pragma unroll 1
      for (uint32_t i = half / 2 * 2; i < half / 2 * 2 + 2; ++i) {
        const uint32_t task = first + i, of_q = task - n_cells();
        const Of what = of(task);
        const float* y = rows[i];
        if (what == Of::kKey || what == Of::kValue) {
          const bool is_key = what == Of::kKey;
          store_integers(y, {is_key ? k_page : v_page, pos % 16, kCacheI16, c.n_kv_heads, width(what), is_key}, kv_head,
                         lane);
        } else if (task < n_tasks) {
          quantize_head(c, what == Of::kQuery ? y : nullptr, of_q, q, scales);
          if (what == Of::kQuery && q_out != nullptr)
            for (uint32_t v = lane; v < c.head_dim; v += 32) q_out[of_q * c.head_dim + v] = y[v];
        }
      }
      __syncwarp();
    }
    __syncthreads();
  }
};

template <uint32_t kTiles>
struct Attend : IntegerChunk {
  static constexpr uint32_t kHeads = 4 * kTiles;

  const RopeArgs* rope;  // null: q and the cells of the cache were made by earlier launches

  __device__ __forceinline__ void run(Shared<kTiles>& shared, uint2* memory) const {
    const uint32_t t = blockIdx.x, group = args.symbols[symbol::Attention::group];
    const TokenChunks chunks(args, c, t);
    const bool is_whole = gridDim.z == 1;
    const Records records{record_at(args, static_cast<uint64_t>(t) * c.n_heads + kv_head * group, 0),
                          args.symbols[symbol::Attention::chunks], args.symbols[symbol::Attention::floats]};
    const uint32_t first_chunk = chunks.first_chunk, last_chunk = chunks.last_chunk;
    uint32_t chunk = first_chunk + blockIdx.z;
    const bool is_early = rope != nullptr || chunks.is_early(args, chunk);
    if (!is_early) wait_for_inputs();
    if (chunk > last_chunk) return;
    // `memory` holds the digits of q, the factors of the heads' scores and, if chunks are merged here, o, maximum and
    // sum of each head.
    const uint32_t q_steps = (c.head_dim + 31) / 32, total_pitch = c.v_head_dim + 2;
    float* scales_of_q = reinterpret_cast<float*>(memory + (group + 3) / 4 * q_steps * 32);
    float* total = scales_of_q + (group + 3) / 4 * 4;
    Range range = chunks.range_of(chunk);
    int32_t own_pages = own_page(chunks.pages, chunk, range);
    Codes codes = {};
    KeyPlace keys = find_keys(own_pages, range);
    ask_keys(codes, keys.page, 0);
    float* const q_row = args.buffer<float>(binding::Attention::q) +
                         (static_cast<uint64_t>(t) * c.n_heads + kv_head * group) * c.head_dim;
    if (rope != nullptr) {
      const uint32_t pos = chunks.pos;
      OwnHeads heads{*rope, c, t, kv_head, group, pos, (last_chunk - first_chunk) % gridDim.z == blockIdx.z, {}};
      heads.ask(threadIdx.x / 16);
      wait_for_inputs();
      const int32_t own = chunks.pages[pos / 16];
      heads.make(memory, scales_of_q, blockIdx.z == 0 ? q_row : nullptr, const_cast<uint8_t*>(page_at(args, true, own)),
                 const_cast<uint8_t*>(page_at(args, false, own)));
      // The keys of the token's page were loaded before this token's own key was written.
      if (chunk == last_chunk && warp() * 2 + lane() / 16 == pos % kChunk / 16) {
        keys.scales = scales_of_keys(keys.page);
        ask_keys(codes, keys.page, 0);
      }
    } else {
      if (is_early) wait_for_inputs();
      quantize_q(c, q_row, group, memory, scales_of_q);
      __syncthreads();
    }
#pragma unroll 1
    for (;;) {
      const uint32_t next = chunk + gridDim.z;
      const bool is_first = chunk == first_chunk, is_last = next > last_chunk;
      float d_v[4];
      ask_value_scales(d_v, own_pages, range);
#pragma unroll 1
      for (uint32_t h0 = 0; h0 < group; h0 += kHeads) {
        const uint32_t n = min(kHeads, group - h0);
        const uint2* digits = memory + h0 / 4 * q_steps * 32;
        {
          Sums<kTiles> sums = {};
#pragma unroll 1
          for (uint32_t at = 0; at < c.head_dim; at += kBlock) {
            if (at > 0 || h0 > 0) ask_keys(codes, keys.page, at);
#pragma unroll
            for (uint32_t s = 0; s < kSteps; ++s)
              if (at / 32 + s < q_steps) add(sums, codes[s], digits + (at / 32 + s) * 32, q_steps * 32, n);
          }
#pragma unroll
          for (uint32_t tile = 0; tile < kTiles; ++tile) {
            if (tile * 4 >= n) continue;
            const float4 v = join(sums[tile]);
            const uint2 d = keys.scales;
            *reinterpret_cast<float4*>(shared.scores[tile * 4 + lane() % 4] + warp() * 32 + lane() / 4 * 4) =
                make_float4(v.x * __uint_as_float(d.x << 16), v.y * __uint_as_float(d.x & 0xFFFF0000u),
                            v.z * __uint_as_float(d.y << 16), v.w * __uint_as_float(d.y & 0xFFFF0000u));
          }
        }
        __syncthreads();
        ask_values(codes, own_pages, range, 0);
#pragma unroll 1
        for (uint32_t h = warp(); h < n; h += kWarps) {
          const Exponentials e = exponentials(c, shared.scores[h], scales_of_q[h0 + h], range);
          const float d = make_digits(e.p, d_v, range, shared.weights[h / 4], h,
                                      [](uint32_t token) { return token / 8 * 2 + token % 2; });
          if (lane() > 0) continue;
          float* of = (is_whole ? total + (h0 + h) * total_pitch : records.at(h0 + h, chunk)) + c.v_head_dim;
          shared.factors[h] = join_head(of, e, !is_whole || is_first);
          shared.d[h] = d;
        }
        __syncthreads();
#pragma unroll 1
        for (uint32_t at = 0; at < c.v_head_dim; at += kBlock) {
          if (at > 0) ask_values(codes, own_pages, range, at);
          Sums<kTiles> sums = {};
#pragma unroll
          for (uint32_t s = 0; s < 4; ++s) add(sums, codes[s], shared.weights[0][s], 4 * 32, n);
          const uint32_t i = at + warp() * 32 + lane() / 4 * 4;
#pragma unroll
          for (uint32_t tile = 0; tile < kTiles; ++tile) {
            const uint32_t h = tile * 4 + lane() % 4;
            if (h >= n || i >= c.v_head_dim) continue;
            float4 o = join(sums[tile]);
            const float d = shared.d[h];
            o = make_float4(o.x * d, o.y * d, o.z * d, o.w * d);
            if (!is_whole) {
              *reinterpret_cast<float4*>(records.at(h0 + h, chunk) + i) = o;
              continue;
            }
            float* of = total + (h0 + h) * total_pitch + i;
            const float own[4] = {o.x, o.y, o.z, o.w};
#pragma unroll
            for (int e = 0; e < 4; ++e) of[e] = join_value(own[e], of[e], shared.factors[h], is_first);
          }
        }
      }
      if (is_last) break;
      chunk = next;
      range = chunks.range_of(chunk);
      own_pages = own_page(chunks.pages, chunk, range);
      keys = find_keys(own_pages, range);
      ask_keys(codes, keys.page, 0);
    }
    if (!is_whole) return;
    __syncthreads();
    write_row<kThreads>(args, c, total);
  }
};

template <uint32_t kTiles, uint32_t kDim>
__device__ __forceinline__ void attend_integer(const OpArgs& args, const RopeArgs* rope = nullptr) {
  ZRT_DYNAMIC_SHARED(uint2, memory);
  __shared__ __align__(16) Shared<kTiles> shared;
  let_next_start();
  const bool is_token = has_row(args, blockIdx.x);
  wait_for_places(args);
  if (!is_token) {
    wait_for_inputs();
    return;
  }
  Attend<kTiles>{{args, with_heads_of<kDim>(args.constants<push::FlashAttn>()), blockIdx.y}, rope}.run(shared, memory);
}

// The kernels are for kv heads with up to four query heads (4) and with more (8), and for heads of 128 values, of 64,
// and of other sizes.
extern "C" __global__ void __launch_bounds__(kThreads, 4) flash_attn_i16_4_128(const __grid_constant__ OpArgs args) {
  attend_integer<1, 128>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 4) flash_attn_i16_8_128(const __grid_constant__ OpArgs args) {
  attend_integer<2, 128>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 4) flash_attn_i16_4_64(const __grid_constant__ OpArgs args) {
  attend_integer<1, 64>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 4) flash_attn_i16_8_64(const __grid_constant__ OpArgs args) {
  attend_integer<2, 64>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 4) flash_attn_i16_4(const __grid_constant__ OpArgs args) {
  attend_integer<1, 0>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 4) flash_attn_i16_8(const __grid_constant__ OpArgs args) {
  attend_integer<2, 0>(args);
}
extern "C" __global__ void __launch_bounds__(128, 4) flash_attn_1_i16_4_128(const __grid_constant__ TokenArgs args) {
  attend_integer<1, 128>(args.attention, &args.rope);
}
extern "C" __global__ void __launch_bounds__(128, 4) flash_attn_1_i16_4_64(const __grid_constant__ TokenArgs args) {
  attend_integer<1, 64>(args.attention, &args.rope);
}
extern "C" __global__ void __launch_bounds__(128, 4) flash_attn_1_i16_4(const __grid_constant__ TokenArgs args) {
  attend_integer<1, 0>(args.attention, &args.rope);
}
