// Computes FLASH_ATTN and FLASH_ATTN_BATCHED over caches of rotated codes, for steps of few tokens. The bits are those
// of kernels/cpu/flash_attn.cpp.
// Grid: (tokens, kv heads, parts). Each workgroup of four warps computes the query heads of one kv head for one token,
// and takes every gridDim.z-th chunk of the token's history. In the products of tensor cores, codes of K and V are the
// rows, and codes of q or digits of weights are the columns (rotated_chunk.cuh). For each chunk of 128 tokens:
//   Scores: each warp computes those of 32 tokens, for eight heads at a time. Codes of K go from the cache directly to
//   registers.
//   Weights: each warp makes the digits of one head's weights at a time.
//   Values: each warp computes 32 values of four heads at a time, from 16 bytes of each token's codes. Codes of V go
//   through shared memory.
// K and V are loaded one chunk ahead.
// If there is one part, the workgroup merges its chunks, rotates back, and quantizes the result if `quantized` is
// bound. If there are several, each chunk leaves a record, and flash_attn_merge_rotated merges the records.
#include "kernels/cuda/rotated_chunk.cuh"

using namespace zinc_rt::cuda;

struct Shared {
  // Scores without the scale of q. Rows are padded so that neighbouring lanes use different banks.
  float scores[kHeads][kChunk + 4];
  Factors factors[kHeads];
  float d[kMostBlocks][kHeads];          // scales of the weights' codes
  uint2 weights[kMostBlocks][2][4][32];  // digits of four heads each, laid out for products of 32 tokens
};

template <bool kIsR8>
struct Attend : RotatedChunk<kIsR8> {
  using Chunk = RotatedChunk<kIsR8>;
  using Chunk::add_dots;
  using Chunk::args;
  using Chunk::ask_keys;
  using Chunk::ask_values;
  using Chunk::c;
  using Chunk::kv_head;
  using Chunk::lane;
  using Chunk::quantize_q;
  using Chunk::scales_of_values;
  using Chunk::value_pitch;
  using Chunk::warp;
  using typename Chunk::Dots;
  using typename Chunk::Keys;

  // Makes the digits of the weights of one head in a chunk. A warp does it.
  __device__ __forceinline__ void weigh(Shared& shared, const Exponentials& e, const uint16_t* scales, Range range,
                                        uint32_t h) const {
    const uint32_t n_blocks = c.v_head_dim / kv::kBlock;
#pragma unroll 1
    for (uint32_t b = 0; b < n_blocks; ++b) {
      float d[4];
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) d[i] = rotated::value_scale(scales[(lane() + 32 * i) * n_blocks + b]);
      const float own = make_digits(e.p, d, range, shared.weights[b][h / 4], h,
                                    [](uint32_t token) { return token % 2 * 2 + token / 8; });
      if (lane() == 0) shared.d[b][h] = own;
    }
  }

  // The sums of 32 values for four heads. A lane has the values of the bytes lane / 4 * 2 and the next one, for head
  // lane % 4.
  using Sums = int[2][2][4];
  static __device__ __forceinline__ void add_values(Sums& sums, const uint8_t* codes, uint32_t pitch,
                                                    const uint2 (*weights)[4][32], uint32_t n) {
#pragma unroll
    for (uint32_t s = 0; s < 4; ++s) {
      const typename Chunk::Values v(codes + (s * 32 + lane()) * pitch);
#pragma unroll
      for (uint32_t tile = 0; tile < 2; ++tile) {
        if (tile * 4 >= n) continue;
        const uint2 b = weights[tile][s][lane()];
        mma32<true>(sums[tile][0], v.low, b);
        mma32<true>(sums[tile][1], v.high, b);
      }
    }
  }

  __device__ __forceinline__ void run(Shared& shared, uint8_t* memory) const {
    const uint32_t t = blockIdx.x, group = args.symbols[symbol::Attention::group], n_blocks = c.head_dim / kv::kBlock;
    const TokenChunks chunks(args, c, t);
    const bool is_whole = gridDim.z == 1;
    const Records records{record_at(args, static_cast<uint64_t>(t) * c.n_heads + kv_head * group, 0),
                          args.symbols[symbol::Attention::chunks], args.symbols[symbol::Attention::floats]};
    uint32_t chunk = chunks.first_chunk + blockIdx.z;
    const bool is_early = chunks.is_early(args, chunk);
    if (!is_early) wait_for_inputs();
    if (chunk > chunks.last_chunk) return;
    // `memory` holds V of this chunk and of the next one, the codes and scales of q and, if chunks are merged here, o,
    // maximum and sum of each head.
    const uint32_t value_bytes = attend_rotated_value_bytes(c.v_head_dim), eights = (group + kHeads - 1) / kHeads,
                   q_words = n_blocks * 2 * 32, total_pitch = c.v_head_dim + 2;
    auto* q = reinterpret_cast<uint2*>(memory + 2 * value_bytes);
    auto* q_scales = reinterpret_cast<float*>(q + eights * q_words);
    float* total = q_scales + eights * n_blocks * kHeads;
    Range range = chunks.range_of(chunk);
    int32_t own_pages = own_page(chunks.pages, chunk, range);
    Keys keys = {};
    ask_keys(keys, own_pages, range, 0);
    ask_values(memory, own_pages, range);
    if (is_early) wait_for_inputs();
    const float* q_row = args.template buffer<const float>(binding::Attention::q) +
                         (static_cast<uint64_t>(t) * c.n_heads + kv_head * group) * c.head_dim;
    quantize_q([&](uint32_t h) { return q_row + h * c.head_dim; }, group, q, q_scales);
    __syncthreads();
    const float scale = c.scale * rotated::inverse_of(c.head_dim);
    uint32_t half = 0;
#pragma unroll 1
    for (;; half ^= 1) {
      const uint32_t next = chunk + gridDim.z;
      const bool is_alone = !is_whole || chunk == chunks.first_chunk, is_last = next > chunks.last_chunk;
      uint8_t* values = memory + half * value_bytes;
      const Range own_range = range;
      const int32_t page = own_pages;
      if (!is_last) range = chunks.range_of(next), own_pages = own_page(chunks.pages, next, range);
#pragma unroll 1
      for (uint32_t h0 = 0; h0 < group; h0 += kHeads) {
        const uint32_t n = min(kHeads, group - h0);
        Dots dots = {};
#pragma unroll 1
        for (uint32_t b = 0; b < n_blocks; b += kKeyBlocks) {
          if (b > 0 || h0 > 0) ask_keys(keys, page, own_range, b);
          add_dots(dots, keys, b, q + h0 / kHeads * q_words, q_scales + h0 / kHeads * n_blocks * kHeads);
        }
#pragma unroll
        for (uint32_t i = 0; i < 2; ++i) {
          const uint32_t h = lane() % 4 * 2 + i;
          if (h < n)
            *reinterpret_cast<float4*>(shared.scores[h] + warp() * 32 + lane() / 4 * 4) =
                make_float4(dots[0][i], dots[0][2 + i], dots[1][i], dots[1][2 + i]);
        }
        const bool asks_next = !is_last && h0 + kHeads >= group;
        if (asks_next) ask_keys(keys, own_pages, range, 0);
        wait_for_copy_batches<0>();
        __syncthreads();  // scores and values are written, and no warp reads the values of the chunk before
        if (asks_next) ask_values(memory + (half ^ 1) * value_bytes, own_pages, range);
#pragma unroll 1
        for (uint32_t h = warp(); h < n; h += kWarps) {
          const Exponentials e = exponentials(c, shared.scores[h], scale, own_range);
          weigh(shared, e, scales_of_values(values), own_range, h);
          if (lane() > 0) continue;
          float* of = (is_whole ? total + (h0 + h) * total_pitch : records.at(h0 + h, chunk)) + c.v_head_dim;
          shared.factors[h] = join_head(of, e, is_alone);
        }
        __syncthreads();
#pragma unroll 1
        for (uint32_t vector = warp(); vector < c.v_head_dim / 32; vector += kWarps) {
          const uint32_t block = vector / 2, first = block * kv::kBlock + vector % 2 * 16 + lane() / 4 * 2;
          Sums sums = {};
          add_values(sums, values + vector * 16, value_pitch(), shared.weights[block], n);
#pragma unroll
          for (uint32_t tile = 0; tile < 2; ++tile) {
            const uint32_t h = tile * 4 + lane() % 4;
            if (h >= n) continue;
            float* to = (is_whole ? total + (h0 + h) * total_pitch : records.at(h0 + h, chunk)) + first;
            const float d = shared.d[block][h];
#pragma unroll
            for (uint32_t part = 0; part < 2; ++part) {
              const int(&sum)[4] = sums[tile][part];
              auto& at = *reinterpret_cast<float2*>(to + part * 32);
              float2 o =
                  make_float2(rotated::joined_digits(sum[0], sum[1]) * d, rotated::joined_digits(sum[2], sum[3]) * d);
              if (is_whole) {
                const float2 was = at;
                const Factors f = shared.factors[h];
                o = make_float2(join_value(o.x, was.x, f, is_alone), join_value(o.y, was.y, f, is_alone));
              }
              at = o;
            }
          }
        }
      }
      if (is_last) break;
      chunk = next;
    }
    if (!is_whole) return;
    __syncthreads();
    finish(total, group, total_pitch);
  }

  // Makes y of the totals. Each warp rotates one head back at a time.
  __device__ __forceinline__ void finish(float* total, uint32_t group, uint32_t pitch) const {
#pragma unroll 1
    for (uint32_t h = warp(); h < group; h += kWarps) {
      float* o = total + h * pitch;
      const float r = exact::rcp(o[c.v_head_dim + 1]);
      float x[rotated::kRegisters];
#pragma unroll
      for (uint32_t i = 0; i < rotated::kRegisters; ++i) x[i] = i * 32 < c.v_head_dim ? o[lane() + 32 * i] * r : 0.0f;
      rotated::rotate_back(x, c.v_head_dim);
#pragma unroll
      for (uint32_t i = 0; i < rotated::kRegisters; ++i)
        if (i * 32 < c.v_head_dim) o[lane() + 32 * i] = x[i];
    }
    __syncthreads();
    write_row<kThreads, false>(args, c, total);
  }
};

template <bool kIsR8, uint32_t kDim>
__device__ __forceinline__ void attend_rotated(const OpArgs& args) {
  ZRT_DYNAMIC_SHARED(uint4, memory);
  __shared__ __align__(16) Shared shared;
  let_next_start();
  const bool is_token = has_row(args, blockIdx.x);
  wait_for_places(args);
  if (!is_token) {
    wait_for_inputs();
    return;
  }
  Attend<kIsR8>{{args, with_heads_of<kDim>(args.constants<push::FlashAttn>()), blockIdx.y}}.run(
      shared, reinterpret_cast<uint8_t*>(memory));
}

// The kernels are for heads of 128 values, and of other sizes.
extern "C" __global__ void __launch_bounds__(kThreads, 4) flash_attn_r8_128(const __grid_constant__ OpArgs args) {
  attend_rotated<true, 128>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 4) flash_attn_r4_128(const __grid_constant__ OpArgs args) {
  attend_rotated<false, 128>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 4) flash_attn_r8(const __grid_constant__ OpArgs args) {
  attend_rotated<true, 0>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 4) flash_attn_r4(const __grid_constant__ OpArgs args) {
  attend_rotated<false, 0>(args);
}
