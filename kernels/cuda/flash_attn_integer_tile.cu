// FLASH_ATTN and FLASH_ATTN_BATCHED of caches of 16-bit integers, at the bits of kernels/cpu/flash_attn.cpp, for steps of
// many tokens. A workgroup has up to tile_tokens tokens of a slot with the query heads of a kv head: its rows, of which
// each warp has 16, and all of their chunks. K and V of a chunk lie in shared memory as in the cache, but that groups of
// 16 bytes change places so that what is read at once is in different banks. K of the next chunk is on its way while the
// weights of this one are made and its values summed up, V while the next scores are made.
// A lane has rows lane / 4 and 8 more of its warp. Scores are the accumulators of the products q K; a lane's weights
// become the operands of those with V without leaving it: lanes have tokens 8 n + lane % 4 * 2 and the next.
// Grid: kv heads, and as many tiles as are likely; a workgroup may have to take several.
#include "kernels/cuda/tile_rows.cuh"

using namespace zinc_rt::cuda;

constexpr uint32_t kThreads = kAttendTileThreads, kWarps = kThreads / 32, kPages = kChunk / 16;
static_assert(kThreads == kChunk && kWarps * 16 == kAttendIntegerRows);

// Scales of the chunk that is there and of the next one.
struct Shared {
  float d_k[2][kChunk], d_v[2][kChunk];
};

template <uint32_t kWidth>
struct Attend {
  static constexpr uint32_t kSteps = kWidth / 32, kValueTiles = kWidth / 8, kPageWords = kWidth * 8;
  // Where rows are wide, q's digits and the sums of values have no room in registers.
  static constexpr bool kIsWide = kWidth > 128;

  const OpArgs& args;
  const push::FlashAttn c;
  const uint32_t kv_head;
  Shared& shared;
  uint32_t *k_tile, *v_tile;  // words
  uint4* q_tile;              // digits, as the products want them
  float4* o_tile;             // where rows are wide

  static __device__ __forceinline__ uint32_t lane() { return threadIdx.x % 32; }
  static __device__ __forceinline__ uint32_t warp() { return threadIdx.x / 32; }

  // own_pages: own_page() of the chunk. Pages that no row sees are not read.
  __device__ __forceinline__ void stage_keys(int32_t own_pages, Range range) const {
#pragma unroll 1
    for (uint32_t i = 0; i < kPages; ++i) {
      const int32_t page = page_of(own_pages, i);
      if (!has_page(range, i)) continue;
      const uint8_t* from = page_at(args, true, page) + kv_integer::codes_at(kv_head, c.head_dim);
      for (uint32_t at = threadIdx.x; at < c.head_dim * 2; at += kThreads) {
        const uint32_t word = at / 4, four = at % 4 ^ (word & 2);
        copy_16(k_tile + i * kPageWords + word * 16 + four * 4, from + at * 16);
      }
    }
    end_copy_batch();
  }
  __device__ __forceinline__ void stage_values(int32_t own_pages, Range range) const {
#pragma unroll 1
    for (uint32_t i = 0; i < kPages; ++i) {
      const int32_t page = page_of(own_pages, i);
      if (!has_page(range, i)) continue;
      const uint8_t* from = page_at(args, false, page) + kv_integer::codes_at(kv_head, c.v_head_dim);
      const uint32_t fours = c.v_head_dim / 4;
      for (uint32_t at = threadIdx.x; at < 8 * fours; at += kThreads) {
        const uint32_t pair = at / fours, four = at % fours ^ pair % 4 * 2;
        copy_16(v_tile + i * kPageWords + pair * kWidth + four * 4, from + at * 16);
      }
    }
    end_copy_batch();
  }
  // Of the chunk's token that has the thread's number.
  struct Scales {
    uint32_t k, v;
  };
  __device__ __forceinline__ Scales ask_scales(const int32_t* pages, Range range) const {
    const uint32_t i = threadIdx.x / 16, at = threadIdx.x % 16;
    if (!has_page(range, i)) return {0, 0};
    const int32_t page = pages[i];
    const auto read = [&](bool is_key, uint32_t dim) -> uint32_t {
      return reinterpret_cast<const uint16_t*>(page_at(args, is_key, page) +
                                               kv_integer::scales_at(kv_head, c.n_kv_heads, dim))[at];
    };
    return {read(true, c.head_dim), read(false, c.v_head_dim)};
  }
  __device__ __forceinline__ void keep_scales(Scales of, uint32_t half) const {
    shared.d_k[half][threadIdx.x] = __uint_as_float(of.k << 16);
    shared.d_v[half][threadIdx.x] = __uint_as_float(of.v << 16);
  }

  // q of the warp's rows as digits; what their scores are multiplied by, of the lane's two rows. Of a row and a word of
  // two values, lane row % 8 * 4 + word % 4 has two bytes.
  __device__ __forceinline__ void quantize_q(const TileRows& tile, float (&scales)[2]) const {
    uint4* digits = q_tile + warp() * 2 * kSteps * 32;
#pragma unroll 1
    for (uint32_t r = 0; r < 16; ++r) {
      const uint32_t row = warp() * 16 + r;
      const bool has_row = row < tile.n();
      const float* x = args.buffer<const float>(binding::Attention::q) + tile.head_of(has_row ? row : 0) * c.head_dim;
      float2 v[kWidth / 64];
      float most = 0.0f;
#pragma unroll
      for (uint32_t i = 0; i < kWidth / 64; ++i) {
        const uint32_t at = 2 * lane() + 64 * i;
        v[i] = has_row && at < c.head_dim ? *reinterpret_cast<const float2*>(x + at) : make_float2(0.0f, 0.0f);
        most = max_or_nan(most, max_or_nan(v[i].x < 0 ? -v[i].x : v[i].x, v[i].y < 0 ? -v[i].y : v[i].y));
      }
      const CodeScale scale = code_scale(largest_or_nan_of_warp(most));
      if (r % 8 == lane() / 4) scales[r / 8] = c.scale * scale.d;
#pragma unroll
      for (uint32_t i = 0; i < kWidth / 64; ++i) {
        const uint32_t a = code_bits(v[i].x, scale.inverse), b = code_bits(v[i].y, scale.inverse),
                       word = lane() + 32 * i, step = word / 16, j = word / 4 % 4,
                       at = (step * 32 + r % 8 * 4 + word % 4) * 8 + (r / 8 + j / 2 * 2) * 2 + j % 2;
        auto* of = reinterpret_cast<uint16_t*>(digits);
        of[at] = static_cast<uint16_t>(__byte_perm(a, b, 0x51));
        of[kSteps * 32 * 8 + at] = static_cast<uint16_t>(__byte_perm(a, b, 0x40) ^ kLowBits);
      }
    }
    __syncwarp();
  }
  static __device__ __forceinline__ void load(uint32_t (&to)[4], uint4 v) {
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  }
  __device__ __forceinline__ Digits load_q(uint32_t s) const {
    const uint4* from = q_tile + (warp() * 2 * kSteps + s) * 32 + lane();
    Digits q;
    load(q.high, from[0]);
    load(q.low, from[kSteps * 32]);
    return q;
  }

  // Sums of a tile's products: upper and lower bytes by the high and by the low digits.
  struct Sums {
    int upper_high[4], lower_high[4], upper_low[4], lower_low[4];
    __device__ __forceinline__ void add(const Digits& a, const uint32_t (&words)[4]) {
      const uint2 upper{upper_bytes(words[0], words[1]), upper_bytes(words[2], words[3])},
          lower{lower_bytes(words[0], words[1]), lower_bytes(words[2], words[3])};
      mma32<true>(upper_high, a.high, upper);
      mma32<true, false>(lower_high, a.high, lower);
      mma32<true>(upper_low, a.low, upper);
      mma32<true, false>(lower_low, a.low, lower);
    }
    __device__ __forceinline__ float joined(int i) const {
      return zinc_rt::cuda::joined(upper_high[i], lower_high[i], upper_low[i], lower_low[i]);
    }
  };

  __device__ __forceinline__ void score(Scores& s, const float (&scales)[2], uint32_t half) const {
    // The words 16 step + 4 j + lane % 4 of a token; of the second 8 tokens of a page the other half of 16 words.
    const uint32_t swapped = (lane() & 2) << 2;
    const uint32_t* at = k_tile + lane() % 4 * 16;
    Digits q[kIsWide ? 1 : kSteps];
    if constexpr (!kIsWide)
#pragma unroll
      for (uint32_t i = 0; i < kSteps; ++i) q[i] = load_q(i);
#pragma unroll
    for (uint32_t tile = 0; tile < kTokenTiles; ++tile) {
      const uint32_t* of = at + tile / 2 * kPageWords + (lane() / 4 + tile % 2 * 8 ^ swapped);
      Sums sums = {};
#pragma unroll
      for (uint32_t i = 0; i < kSteps; ++i) {
        if constexpr (kIsWide) q[0] = load_q(i);
        uint32_t words[4];
#pragma unroll
        for (uint32_t j = 0; j < 4; ++j) words[j] = of[(16 * i + 4 * j) * 16];
        sums.add(q[kIsWide ? 0 : i], words);
      }
      const float2 d = *reinterpret_cast<const float2*>(shared.d_k[half] + tile * 8 + lane() % 4 * 2);
#pragma unroll
      for (int i = 0; i < 4; ++i) s[tile][i] = sums.joined(i) * (i % 2 == 0 ? d.x : d.y) * scales[i / 2];
    }
    cap(s, c.softcap);
  }

  // Scores become weights, and these codes plus 128. d: scales of the codes.
  template <bool kIsEdge>
  __device__ __forceinline__ void weigh(Scores& s, const Range (&seen)[2], uint32_t half, RowChunk (&rows)[2],
                                        float (&d)[2]) const {
    float largest[2] = {0.0f, 0.0f};
    exponentials<kIsEdge>(s, seen, rows, [&](uint32_t tile, int i, float p) {
      const float weight = p * shared.d_v[half][tile * 8 + lane() % 4 * 2 + i % 2];
      largest[i / 2] = max_or_nan(largest[i / 2], weight);
      return weight;
    });
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const CodeScale scale = code_scale(largest_of_row(largest[r]));
      d[r] = scale.d;
#pragma unroll
      for (uint32_t tile = 0; tile < kTokenTiles; ++tile)
#pragma unroll
        for (int i = 0; i < 2; ++i) s[tile][r * 2 + i] = __uint_as_float(code_bits(s[tile][r * 2 + i], scale.inverse));
    }
  }
  static __device__ __forceinline__ void make_digits(const Scores& s, Digits (&weights)[4]) {
#pragma unroll
    for (uint32_t page = 0; page < kPages; ++page)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float *first = s[2 * page] + r * 2, *second = s[2 * page + 1] + r * 2;
        set_digits(weights[page / 2], page % 2 * 2 + r,
                   {__float_as_uint(first[0]), __float_as_uint(first[1]), __float_as_uint(second[0]),
                    __float_as_uint(second[1])});
      }
  }

  using Values = float[kIsWide ? 1 : kValueTiles][4];  // 8 values' columns of both rows
  __device__ __forceinline__ float4& wide_values(uint32_t tile) const {
    return o_tile[(warp() * kValueTiles + tile) * 32 + lane()];
  }
  __device__ __forceinline__ void sum_values(Values& o, const Digits (&weights)[4], const Row (&rows)[2],
                                             const float (&d)[2]) const {
    const uint32_t a = lane() % 4;
    const uint32_t* at = v_tile + a * kWidth + lane() / 4;
#pragma unroll
    for (uint32_t tile = 0; tile < kValueTiles; ++tile) {
      if (tile * 8 >= c.v_head_dim) continue;
      const uint32_t* from = at + (tile / 4 * 4 + (tile % 4 ^ a)) * 8;
      Sums sums = {};
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        uint32_t words[4];
#pragma unroll
        for (uint32_t j = 0; j < 4; ++j) words[j] = from[(2 * i + j / 2) * kPageWords + j % 2 * 4 * kWidth];
        sums.add(weights[i], words);
      }
      float v[4] = {};
      if constexpr (kIsWide) {
        const float4 was = wide_values(tile);
        v[0] = was.x, v[1] = was.y, v[2] = was.z, v[3] = was.w;
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) v[i] = o[tile][i];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        v[i] = rows[i / 2].joined(sums.joined(i) * d[i / 2], v[i]);
      }
      if constexpr (kIsWide) {
        wide_values(tile) = make_float4(v[0], v[1], v[2], v[3]);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) o[tile][i] = v[i];
      }
    }
  }

  __device__ __forceinline__ void write(const Values& o, const Row (&rows)[2], const TileRows& of_tile) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const uint32_t row = TileRows::own(r);
      if (row >= of_tile.n()) continue;
      float* y = args.buffer<float>(binding::Attention::y) + of_tile.head_of(row) * c.v_head_dim + lane() % 4 * 2;
      const auto sink = factors_of_sink(args, of_tile.head_of(row) % c.n_heads, rows[r].most);
      const float by = exact::rcp(rows[r].sum * sink.of_total + sink.share);
#pragma unroll
      for (uint32_t tile = 0; tile < kValueTiles; ++tile) {
        if (tile * 8 >= c.v_head_dim) continue;
        float2 v;
        if constexpr (kIsWide) {
          const float4 of = wide_values(tile);
          v = r == 0 ? make_float2(of.x, of.y) : make_float2(of.z, of.w);
        } else {
          v = make_float2(o[tile][r * 2], o[tile][r * 2 + 1]);
        }
        *reinterpret_cast<float2*>(y + tile * 8) = make_float2(v.x * sink.of_total * by, v.y * sink.of_total * by);
      }
    }
  }

  __device__ __forceinline__ void run(Tokens tokens) const {
    const TileRows tile(args, c, kv_head, tokens);
    uint32_t chunk = tile.first_chunk;
    Row rows[2];
    tile.begin(rows);
    __syncthreads();  // nobody looks for a tile any more, or reads what lies in shared memory
    Range range = tile.range_of(chunk);
    int32_t own_pages = own_page(tile.pages, chunk, range);
    stage_keys(own_pages, range);
    stage_values(own_pages, range);
    keep_scales(ask_scales(tile.pages + chunk * kPages, range), 0);
    float scales[2];
    quantize_q(tile, scales);
    Values o = {};
    const bool has_rows = TileRows::first_of_warp() < tile.n();
    uint32_t half = 0;
#pragma unroll 1
    for (;; half ^= 1) {
      wait_for_copy_batches<1>();
      __syncthreads();  // K and the scales are there
      const bool is_last = chunk == tile.last_chunk;
      Scales next_scales{0, 0};
      if (!is_last) {
        range = tile.range_of(chunk + 1);
        own_pages = own_page(tile.pages, chunk + 1, range);
        next_scales = ask_scales(tile.pages + (chunk + 1) * kPages, range);
      }
      Scores s;
      if (has_rows) score(s, scales, half);
      __syncthreads();  // nobody reads K any more
      if (is_last)
        end_copy_batch();
      else
        stage_keys(own_pages, range);
      RowChunk of[2];
      float d[2];
      Digits weights[4];
      if (has_rows) {
        Range seen[2];
        tile.seen_of(rows, chunk, seen);
        if (tile.is_edge(chunk))
          weigh<true>(s, seen, half, of, d);
        else
          weigh<false>(s, seen, half, of, d);
        make_digits(s, weights);
        for (int r = 0; r < 2; ++r) rows[r].join(of[r], chunk);
      }
      wait_for_copy_batches<1>();
      __syncthreads();  // V is there
      if (has_rows) sum_values(o, weights, rows, d);
      if (is_last) break;
      keep_scales(next_scales, half ^ 1);
      __syncthreads();  // nobody reads V any more
      stage_values(own_pages, range);
      ++chunk;
    }
    let_next_start();
    if (has_rows) write(o, rows, tile);
  }
};

template <uint32_t kWidth>
__device__ __forceinline__ void attend_integer_tile(const OpArgs& args) {
  using A = Attend<kWidth>;
  ZRT_DYNAMIC_SHARED(uint4, memory);
  __shared__ __align__(16) Shared shared;
  wait_for_inputs();
  const auto c = args.constants<push::FlashAttn>();
  auto* words = reinterpret_cast<uint32_t*>(memory);
  auto* q_tile = memory + 2 * kPages * A::kPageWords / 4;
  const A attend{args,       c,
                 blockIdx.x, shared,
                 words,      words + kPages * A::kPageWords,
                 q_tile,     reinterpret_cast<float4*>(q_tile + kWarps * 2 * A::kSteps * 32)};
  for_own_tiles<kThreads>(args, words, [&](Tokens tokens) { attend.run(tokens); });
}

extern "C" __global__ void __launch_bounds__(kThreads, 3) flash_attn_tile_i16_64(const __grid_constant__ OpArgs args) {
  attend_integer_tile<64>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 2) flash_attn_tile_i16_128(const __grid_constant__ OpArgs args) {
  attend_integer_tile<128>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 1) flash_attn_tile_i16_256(const __grid_constant__ OpArgs args) {
  attend_integer_tile<256>(args);
}
