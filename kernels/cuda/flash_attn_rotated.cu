// FLASH_ATTN and FLASH_ATTN_BATCHED of caches of rotated codes, at the bits of kernels/cpu/flash_attn.cpp, for steps of
// few tokens. A workgroup has a query token, a kv head with its query heads, and every gridDim.z-th chunk. Codes of
// keys go from the cache to the registers of the products (rotated_cells.cuh), those of values to shared memory; both
// are on their way a chunk ahead.
// Scores: a warp has 32 keys, the rows of its products; columns are the codes of q of eight heads. A lane has four
// keys. Weights: a warp has a head, or several in turn. Values: a warp has 16 bytes of a token's codes in turn, 32
// values, which are the rows; columns are the digits of the weights of four heads.
// With one part in z the workgroup merges its chunks, rotates back, and quantizes the result if `quantized` is bound;
// with several each chunk leaves a record for flash_attn_merge_rotated.
#include "kernels/cuda/rotated_cells.cuh"
#include "kernels/cuda/token_chunks.cuh"

using namespace zinc_rt::cuda;

constexpr uint32_t kThreads = kAttendRotatedThreads, kWarps = kThreads / 32, kHeads = 8, kPages = kChunk / 16;
constexpr uint32_t kMostBlocks = rotated::kMostBlocks, kKeyBlocks = 2;  // of a key, at a time
static_assert(kThreads == kChunk && kHeads == kAttendRotatedHeads);

struct Shared {
  float scores[kHeads][kChunk + 4];  // without the scale of q; the rows of a lane's neighbours are in other banks
  Factors factors[kHeads];
  float d[kMostBlocks][kHeads];          // of the weights
  uint2 weights[kMostBlocks][2][4][32];  // of four heads, digits, as the products of 32 tokens want them
};

template <bool kIsR8>
struct Attend {
  static constexpr uint32_t kBlockWords = kIsR8 ? 16 : 8, kVectors = kKeyBlocks * kBlockWords / 4;

  const OpArgs& args;
  const push::FlashAttn c;
  const uint32_t kv_head;

  static __device__ __forceinline__ uint32_t lane() { return threadIdx.x % 32; }
  static __device__ __forceinline__ uint32_t warp() { return threadIdx.x / 32; }

  // A warp a head. Of eight heads and 32 values, lane l of a product has column l / 4, which is the head. scales: of
  // blocks and eight heads.
  __device__ __forceinline__ void quantize_q(const float* q_row, uint32_t n_heads, uint2* q, float* scales) const {
    const uint32_t n_blocks = c.head_dim / kv::kBlock;
#pragma unroll 1
    for (uint32_t h = warp(); h < n_heads; h += kWarps) {
      float x[rotated::kRegisters];
      rotated::rotate(q_row + h * c.head_dim, c.head_dim, x);
      uint2* codes = q + h / kHeads * n_blocks * 2 * 32 + h % kHeads * 4;
#pragma unroll 1
      for (uint32_t b = 0; b < n_blocks; ++b) {
        const rotated::QBlock block =
            rotated::quantize_block(rotated::register_of(x, 2 * b), rotated::register_of(x, 2 * b + 1));
        const auto store = [&](uint32_t i, int code) {
          const rotated::QPlace at = rotated::place_of_q<kIsR8>(b * kv::kBlock + i);
          reinterpret_cast<int8_t*>(codes + at.step * 32 + at.word)[at.byte] = static_cast<int8_t>(code);
        };
        store(lane(), block.first);
        store(32 + lane(), block.second);
        if (lane() == 0) scales[(h / kHeads * n_blocks + b) * kHeads + h % kHeads] = block.d;
      }
    }
  }

  // Blocks [first, first + kKeyBlocks) of the lane's four keys: words, and the keys' scales. What is not seen, or not of
  // the head, stays as it was: its scores are not read.
  struct Keys {
    uint4 words[kVectors];
    uint2 scales[kKeyBlocks];
  };
  __device__ __forceinline__ void ask_keys(Keys& k, int32_t own_pages, Range range, uint32_t first) const {
    const uint32_t own = warp() * 2 + lane() / 16, four = lane() / 4 % 4, n_blocks = c.head_dim / kv::kBlock;
    const uint8_t* page = page_at(args, true, page_of(own_pages, own));
    const bool is_there = has_page(range, own);
    const uint8_t *words = page + kv::codes_at(kIsR8, kv_head, c.head_dim) + (first * kBlockWords + lane() % 4) * 64 +
                           four * 16,
                  *scales = page + kv::scales_at(kIsR8, kv_head, c.n_kv_heads, c.head_dim) + first * 32 + four * 8;
#pragma unroll
    for (uint32_t b = 0; b < kKeyBlocks; ++b) {
      const bool has_block = is_there && first + b < n_blocks;
      if (has_block) k.scales[b] = *reinterpret_cast<const uint2*>(scales + b * 32);
#pragma unroll
      for (uint32_t i = b * kVectors / kKeyBlocks; i < (b + 1) * kVectors / kKeyBlocks; ++i) {
        if (has_block) k.words[i] = *reinterpret_cast<const uint4*>(words + i * 256);
      }
    }
  }
  // A step of 32 values of the keys' rows, of a lane's first two keys or the others.
  static __device__ __forceinline__ void load_step(const Keys& k, uint32_t step, uint32_t rows, uint32_t (&a)[4]) {
    const auto first = [&](uint32_t i) { return rows == 0 ? k.words[i].x : k.words[i].z; };
    const auto second = [&](uint32_t i) { return rows == 0 ? k.words[i].y : k.words[i].w; };
    if constexpr (kIsR8) {
      a[0] = first(2 * step), a[1] = second(2 * step), a[2] = first(2 * step + 1), a[3] = second(2 * step + 1);
    } else {
      const uint2 x = rotated::table_values(first(step)), y = rotated::table_values(second(step));
      a[0] = x.x, a[1] = y.x, a[2] = x.y, a[3] = y.y;
    }
  }

  // Of four keys (two of each rows) and two heads, as the products have them.
  using Dots = float[2][4];
  __device__ __forceinline__ void add_dots(Dots& dots, const Keys& k, uint32_t first, const uint2* q,
                                           const float* scales) const {
#pragma unroll
    for (uint32_t b = 0; b < kKeyBlocks; ++b) {
      if (first + b >= c.head_dim / kv::kBlock) continue;
      const float2 d_q = *reinterpret_cast<const float2*>(scales + (first + b) * kHeads + lane() % 4 * 2);
#pragma unroll
      for (uint32_t rows = 0; rows < 2; ++rows) {
        int sums[4] = {rotated::kSumZero, rotated::kSumZero, rotated::kSumZero, rotated::kSumZero};
#pragma unroll
        for (uint32_t s = 0; s < 2; ++s) {
          uint32_t a[4];
          load_step(k, 2 * b + s, rows, a);
          mma32<true>(sums, a, q[((first + b) * 2 + s) * 32 + lane()]);
        }
        const uint32_t halves = rows == 0 ? k.scales[b].x : k.scales[b].y;
        const float d[2] = {rotated::key_scale<kIsR8>(halves), rotated::key_scale<kIsR8>(halves >> 16)};
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i)
          dots[rows][i] = __fmaf_rn(rotated::times_sum(sums[i], d[i / 2]), i % 2 == 0 ? d_q.x : d_q.y, dots[rows][i]);
      }
    }
  }

  // Values of a chunk: a token's codes lie `pitch` bytes apart, its scales behind all codes as in the cache. What is
  // not seen is not read; its weights are 0.
  __device__ __forceinline__ uint32_t value_pitch() const { return attend_rotated_value_pitch(c.v_head_dim); }
  __device__ __forceinline__ uint16_t* scales_of_values(uint8_t* values) const {
    return reinterpret_cast<uint16_t*>(values + kChunk * value_pitch());
  }
  // The threads go through the pages together; a thread has the same place of each.
  __device__ __forceinline__ void ask_values(uint8_t* values, int32_t own_pages, Range range) const {
    const uint32_t shift = c.v_head_dim == 64 ? 1 : c.v_head_dim == 128 ? 2 : 3, vectors = 1u << shift;  // a token's
    const uint32_t pitch = value_pitch(), token = threadIdx.x >> shift, tokens = kThreads >> shift;
    const uint8_t* codes =
        page_at(args, false, 0) + kv::codes_at(false, kv_head, c.v_head_dim) + threadIdx.x % (16 * vectors) * 16;
    uint8_t* to = values + token * pitch + threadIdx.x % vectors * 16;
    const uint64_t page_bytes = args.symbols[symbol::Attention::pitch_kv_v];
#pragma unroll 2
    for (uint32_t first = token / 16; first < kPages; first += tokens / 16, to += tokens * pitch) {
      const auto page = static_cast<uint32_t>(page_of(own_pages, first));
      if (has_page(range, first)) copy_16(to, codes + page * page_bytes);
    }
    // Scales, by other warps than those of narrow heads' codes.
    const uint32_t at = kThreads - 1 - threadIdx.x, of_page = at >> shift;
    const int32_t page = page_of(own_pages, of_page % kPages);
    if (of_page < kPages && has_page(range, of_page))
      copy_16(
          scales_of_values(values) + at * 8,
          page_at(args, false, page) + kv::scales_at(false, kv_head, c.n_kv_heads, c.v_head_dim) + at % vectors * 16);
    end_copy_batch();
  }

  // Of a head in a chunk, by a warp.
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

  // 32 values of four heads a tile: rows are the values of the low and of the high halves of 16 bytes. A lane has bytes
  // lane / 4 * 2 and the next, and head lane % 4.
  using Sums = int[2][2][4];
  static __device__ __forceinline__ void add_values(Sums& sums, const uint8_t* codes, uint32_t pitch,
                                                    const uint2 (*weights)[4][32], uint32_t n) {
#pragma unroll
    for (uint32_t s = 0; s < 4; ++s) {
      uint32_t m[4], low[4], high[4];
      load_matrices_transposed(m, codes + (s * 32 + lane()) * pitch);
#pragma unroll
      for (uint32_t i = 0; i < 2; ++i) {
        const rotated::CodePairs pairs = rotated::pair_codes(m[2 * i], m[2 * i + 1]);
        const uint2 x = rotated::table_values(__byte_perm(pairs.low, 0, 0x3120)),
                    y = rotated::table_values(__byte_perm(pairs.high, 0, 0x3120));
        low[2 * i] = x.x, low[2 * i + 1] = x.y, high[2 * i] = y.x, high[2 * i + 1] = y.y;
      }
#pragma unroll
      for (uint32_t tile = 0; tile < 2; ++tile) {
        if (tile * 4 >= n) continue;
        const uint2 b = weights[tile][s][lane()];
        mma32<true>(sums[tile][0], low, b);
        mma32<true>(sums[tile][1], high, b);
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
    // Values of this chunk and of the next; codes and scales of q; where chunks are merged here, o, maximum and sum of
    // each head.
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
    quantize_q(args.buffer<const float>(binding::Attention::q) +
                   (static_cast<uint64_t>(t) * c.n_heads + kv_head * group) * c.head_dim,
               group, q, q_scales);
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
        __syncthreads();  // scores and values are there, and nobody reads the values before
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

  // Rows of `total` become y. A warp a head.
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
  Attend<kIsR8>{args, with_heads_of<kDim>(args.constants<push::FlashAttn>()), blockIdx.y}.run(
      shared, reinterpret_cast<uint8_t*>(memory));
}

// Of heads of 128 values, and of others.
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
