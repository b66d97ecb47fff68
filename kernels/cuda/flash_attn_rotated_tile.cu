// FLASH_ATTN and FLASH_ATTN_BATCHED of caches of rotated codes, at the bits of kernels/cpu/flash_attn.cpp, for steps of
// many tokens. A workgroup has up to tile_tokens tokens of a slot with the query heads of a kv head: its rows, of which
// each warp has 16, and all of their chunks. Codes of a chunk come to shared memory as they lie in the cache, while the
// chunk before is computed. The workgroup makes of them the bytes that products want, once for all rows: table values,
// of V four tokens of a value beside each other; keys of eight bits stay as they are.
// A lane has rows lane / 4 and 8 more of its warp. Scores are the accumulators of the products q K, of a block of 64
// values at a time. The weights of a block of V become the operands of its products without leaving their lane: lanes
// have tokens 8 n + lane % 4 * 2 and the next.
// Grid: kv heads, and as many tiles as are likely; a workgroup may have to take several.
#include "kernels/cuda/rotated_cells.cuh"
#include "kernels/cuda/tile_rows.cuh"

using namespace zinc_rt::cuda;

constexpr uint32_t kThreads = kAttendTileThreads, kWarps = kThreads / 32, kPages = kChunk / 16;
constexpr uint32_t kUnseen = 0x80000000u;  // -0: what no exponential is, and what changes no sum
static_assert(kThreads == kChunk && kWarps * 16 == kAttendIntegerRows);

// Scales of the chunk that is there and of the next one.
template <uint32_t kBlocks>
struct Shared {
  float d_k[2][kBlocks][kChunk], d_v[2][kBlocks][kChunk];
};

template <bool kIsR8, uint32_t kWidth>
struct Attend {
  static constexpr uint32_t kSteps = kWidth / 32, kBlocks = kWidth / kv::kBlock, kValueTiles = kWidth / 8,
                            kPageWords = kWidth * 4;
  // Where rows are wide, q's codes and the sums of values have no room in registers.
  static constexpr bool kIsWide = kWidth > 128;

  const OpArgs& args;
  const push::FlashAttn c;
  const uint32_t kv_head;
  Shared<kBlocks>& shared;
  uint32_t *k_tile, *v_tile;   // words, as the products want them
  uint8_t *k_codes, *v_codes;  // as in the cache, a page after another; keys of eight bits are the tile
  uint4* q_tile;               // codes, as the products want them
  float4* o_tile;              // where rows are wide

  __device__ __forceinline__ Attend(const OpArgs& of, uint32_t head, Shared<kBlocks>& scales, uint4* memory)
      : args(of), c(of.constants<push::FlashAttn>()), kv_head(head), shared(scales) {
    k_tile = reinterpret_cast<uint32_t*>(memory);
    v_tile = k_tile + kPages * kPageWords;
    v_codes = reinterpret_cast<uint8_t*>(v_tile + kPages * kPageWords);
    k_codes = v_codes + kChunk * kWidth / 2;
    q_tile = reinterpret_cast<uint4*>(k_codes + (kIsR8 ? 0 : kChunk * kWidth / 2));
    o_tile = reinterpret_cast<float4*>(q_tile + kWarps * kSteps * 32);
  }

  static __device__ __forceinline__ uint32_t lane() { return threadIdx.x % 32; }
  static __device__ __forceinline__ uint32_t warp() { return threadIdx.x / 32; }

  // own_pages: own_page() of the chunk. Pages that no row sees are not read.
  __device__ __forceinline__ void stage(int32_t own_pages, Range range) const {
#pragma unroll 1
    for (uint32_t i = 0; i < kPages; ++i) {
      const int32_t page = page_of(own_pages, i);
      if (!has_page(range, i)) continue;
      const uint8_t *keys = page_at(args, true, page) + kv::codes_at(kIsR8, kv_head, c.head_dim),
                    *values = page_at(args, false, page) + kv::codes_at(false, kv_head, c.v_head_dim);
      for (uint32_t at = threadIdx.x; at < kv::code_bytes(kIsR8, c.head_dim); at += kThreads) {
        if constexpr (kIsR8)
          copy_16(k_tile + i * kPageWords + key_word(at / 4, at % 4), keys + at * 16);
        else
          copy_16(k_codes + i * 8 * kWidth + at * 16, keys + at * 16);
      }
      for (uint32_t at = threadIdx.x; at < c.v_head_dim / 2; at += kThreads)
        copy_16(v_codes + i * 8 * kWidth + at * 16, values + at * 16);
    }
    end_copy_batch();
  }
  // Where four tokens of a word of a page's keys begin: groups of 16 bytes change places so that what is read at once
  // is in different banks.
  static __device__ __forceinline__ uint32_t key_word(uint32_t word, uint32_t four) {
    return word * 16 + (four ^ (word & 2)) * 4;
  }

  // Of the chunk's token that has the thread's number.
  struct Scales {
    uint32_t k[kBlocks], v[kBlocks];
  };
  __device__ __forceinline__ Scales ask_scales(const int32_t* pages, Range range) const {
    const uint32_t i = threadIdx.x / 16, at = threadIdx.x % 16;
    Scales of{};
    if (!has_page(range, i)) return of;
    const int32_t page = pages[i];
    const auto *keys = reinterpret_cast<const uint16_t*>(page_at(args, true, page) +
                                                         kv::scales_at(kIsR8, kv_head, c.n_kv_heads, c.head_dim)),
               *values = reinterpret_cast<const uint16_t*>(page_at(args, false, page) +
                                                           kv::scales_at(false, kv_head, c.n_kv_heads, c.v_head_dim));
#pragma unroll
    for (uint32_t b = 0; b < kBlocks; ++b) {
      if (b * kv::kBlock < c.head_dim) of.k[b] = keys[b * kv::kPageTokens + at];
      if (b * kv::kBlock < c.v_head_dim) of.v[b] = values[at * (c.v_head_dim / kv::kBlock) + b];
    }
    return of;
  }
  __device__ __forceinline__ void keep_scales(const Scales& of, uint32_t half) const {
#pragma unroll
    for (uint32_t b = 0; b < kBlocks; ++b) {
      shared.d_k[half][b][threadIdx.x] = rotated::key_scale<kIsR8>(of.k[b]);
      shared.d_v[half][b][threadIdx.x] = rotated::value_scale(of.v[b]);
    }
  }

  // Codes in shared memory become the tiles.
  __device__ __forceinline__ void make_tiles(Range range) const {
    if constexpr (!kIsR8) {
      const uint32_t fours = c.head_dim / 2;  // of tokens, of a page's words
#pragma unroll 1
      for (uint32_t i = threadIdx.x; i < kPages * fours; i += kThreads) {
        const uint32_t page = i / fours, word = i % fours / 4, four = i % 4;
        if (!has_page(range, page)) continue;
        const uint4 codes = *reinterpret_cast<const uint4*>(k_codes + page * 8 * kWidth + i % fours * 16);
        const uint2 x = rotated::table_values(codes.x), y = rotated::table_values(codes.y),
                    z = rotated::table_values(codes.z), w = rotated::table_values(codes.w);
        // The words of a step of 32 values: first those of the products' first registers.
        uint32_t* to = k_tile + page * kPageWords + key_word(word / 4 * 8 + word % 4, four);
        *reinterpret_cast<uint4*>(to) = make_uint4(x.x, y.x, z.x, w.x);
        *reinterpret_cast<uint4*>(to + 4 * 16) = make_uint4(x.y, y.y, z.y, w.y);
      }
    }
    // Of V tokens 2 a, the next, and those 8 further of a page, and four bytes of each.
    const uint32_t words = c.v_head_dim / 8;
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < kPages * 4 * words; i += kThreads) {
      const uint32_t word = i % words, a = i / words % 4, page = i / words / 4;
      if (!has_page(range, page)) continue;
      const auto* codes = reinterpret_cast<const uint32_t*>(v_codes + page * 8 * kWidth) + 2 * a * words + word;
      const rotated::CodePairs first = rotated::pair_codes(codes[0], codes[words]),
                               second = rotated::pair_codes(codes[8 * words], codes[9 * words]);
      uint32_t* to = v_tile + page * kPageWords + a * kWidth;
      const uint32_t value = word / 8 * kv::kBlock + word % 8 * 4;
      const auto store = [&](uint32_t at, uint32_t x, uint32_t y) {
        const uint2 low = rotated::table_values(__byte_perm(x, y, 0x5140)),
                    high = rotated::table_values(__byte_perm(x, y, 0x7362));
        *reinterpret_cast<uint4*>(to + (at ^ a * 8)) = make_uint4(low.x, low.y, high.x, high.y);
      };
      store(value, first.low, second.low);
      store(value + 32, first.high, second.high);
    }
  }

  // q of the warp's rows as codes; their scales, of the lane's two rows.
  using QScales = float[2][kBlocks];
  __device__ __forceinline__ void quantize_q(const TileRows& tile, QScales& d) const {
    auto* codes = reinterpret_cast<int8_t*>(q_tile + warp() * kSteps * 32);
#pragma unroll 1
    for (uint32_t r = 0; r < 16; ++r) {
      const uint32_t row = warp() * 16 + r;
      float x[rotated::kRegisters] = {};
      if (row < tile.n())
        rotated::rotate(args.buffer<const float>(binding::Attention::q) + tile.head_of(row) * c.head_dim, c.head_dim,
                        x);
#pragma unroll
      for (uint32_t b = 0; b < kBlocks; ++b) {
        if (b * kv::kBlock >= c.head_dim) continue;
        const rotated::QBlock block = rotated::quantize_block(x[2 * b], x[2 * b + 1]);
        if (r % 8 == lane() / 4) d[r / 8][b] = block.d;
        const auto store = [&](uint32_t i, int code) {
          const rotated::QPlace at = rotated::place_of_q<kIsR8>(b * kv::kBlock + i);
          codes[((at.step * 32 + r % 8 * 4 + at.word) * 4 + r / 8 + at.byte / 4 * 2) * 4 + at.byte % 4] =
              static_cast<int8_t>(code);
        };
        store(lane(), block.first);
        store(32 + lane(), block.second);
      }
    }
    __syncwarp();
  }
  __device__ __forceinline__ void load_q(uint32_t s, uint32_t (&q)[4]) const {
    const uint4 v = q_tile[(warp() * kSteps + s) * 32 + lane()];
    q[0] = v.x, q[1] = v.y, q[2] = v.z, q[3] = v.w;
  }

  __device__ __forceinline__ void score(Scores& s, const QScales& d_q, uint32_t half) const {
    // The words 8 step + 4 j + lane % 4 of a token; of the second 8 tokens of a page the other half of 16 words.
    const uint32_t swapped = (lane() & 2) << 2;
    const uint32_t* at = k_tile + lane() % 4 * 16;
    const float scale = c.scale * (1.0f / static_cast<float>(c.head_dim));
    uint32_t q[kIsWide ? 1 : kSteps][4];
    if constexpr (!kIsWide)
#pragma unroll
      for (uint32_t i = 0; i < kSteps; ++i) load_q(i, q[i]);
#pragma unroll
    for (uint32_t tile = 0; tile < kTokenTiles; ++tile) {
      const uint32_t* of = at + tile / 2 * kPageWords + (lane() / 4 + tile % 2 * 8 ^ swapped);
#pragma unroll
      for (int i = 0; i < 4; ++i) s[tile][i] = 0.0f;
#pragma unroll
      for (uint32_t b = 0; b < kBlocks; ++b) {
        if (b * kv::kBlock >= c.head_dim) continue;
        int sums[4] = {rotated::kSumZero, rotated::kSumZero, rotated::kSumZero, rotated::kSumZero};
#pragma unroll
        for (uint32_t i = 2 * b; i < 2 * b + 2; ++i) {
          if constexpr (kIsWide) load_q(i, q[0]);
          mma32<true>(sums, q[kIsWide ? 0 : i], uint2{of[8 * i * 16], of[(8 * i + 4) * 16]});
        }
        const float2 d = *reinterpret_cast<const float2*>(shared.d_k[half][b] + tile * 8 + lane() % 4 * 2);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          s[tile][i] = __fmaf_rn(rotated::times_sum(sums[i], i % 2 == 0 ? d.x : d.y), d_q[i / 2][b], s[tile][i]);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) s[tile][i] = s[tile][i] * scale;
    }
    cap(s, c.softcap);
  }

  // The weights of a block of V as digits, and their codes' scales. kIsEdge: some p are kUnseen.
  template <bool kIsEdge>
  __device__ __forceinline__ void weigh(const Scores& p, const float* d_v, Digits (&weights)[4], float (&d)[2]) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float w[kTokenTiles][2], largest = 0.0f;
#pragma unroll
      for (uint32_t tile = 0; tile < kTokenTiles; ++tile) {
        const float2 of = *reinterpret_cast<const float2*>(d_v + tile * 8 + lane() % 4 * 2);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float own = p[tile][2 * r + i];
          const bool is_seen = !kIsEdge || __float_as_uint(own) != kUnseen;
          w[tile][i] = is_seen ? own * (i == 0 ? of.x : of.y) : 0.0f;
          largest = max_or_nan(largest, w[tile][i]);
        }
      }
      const CodeScale scale = code_scale(largest_of_row(largest));
      d[r] = scale.d;
#pragma unroll
      for (uint32_t page = 0; page < kPages; ++page) {
        const float *first = w[2 * page], *second = w[2 * page + 1];
        set_digits(weights[page / 2], page % 2 * 2 + r,
                   {code_bits(first[0], scale.inverse), code_bits(first[1], scale.inverse),
                    code_bits(second[0], scale.inverse), code_bits(second[1], scale.inverse)});
      }
    }
  }

  using Values = float[kIsWide ? 1 : kValueTiles][4];  // 8 values' columns of both rows
  __device__ __forceinline__ float4& wide_values(uint32_t tile) const {
    return o_tile[(warp() * kValueTiles + tile) * 32 + lane()];
  }
  __device__ __forceinline__ void load_values(const Values& o, uint32_t tile, float (&v)[4]) const {
    if constexpr (kIsWide) {
      const float4 of = wide_values(tile);
      v[0] = of.x, v[1] = of.y, v[2] = of.z, v[3] = of.w;
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) v[i] = o[tile][i];
    }
  }
  // Of block b.
  __device__ __forceinline__ void sum_values(Values& o, uint32_t b, const Digits (&weights)[4], const Row (&rows)[2],
                                             const float (&d)[2]) const {
    const uint32_t a = lane() % 4;
    const uint32_t* at = v_tile + a * kWidth + lane() / 4;
#pragma unroll
    for (uint32_t tile = b * 8; tile < b * 8 + 8; ++tile) {
      const uint32_t* from = at + (tile / 4 * 4 + (tile % 4 ^ a)) * 8;
      int high[4] = {}, low[4] = {};
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        const uint2 values = uint2{from[2 * i * kPageWords], from[(2 * i + 1) * kPageWords]};
        mma32<true>(high, weights[i].high, values);
        mma32<true>(low, weights[i].low, values);
      }
      float v[4];
      load_values(o, tile, v);
#pragma unroll
      for (int i = 0; i < 4; ++i) v[i] = rows[i / 2].joined(rotated::joined_digits(high[i], low[i]) * d[i / 2], v[i]);
      if constexpr (kIsWide) {
        wide_values(tile) = make_float4(v[0], v[1], v[2], v[3]);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) o[tile][i] = v[i];
      }
    }
  }

  // The chunk's values join those before, by its scores.
  template <bool kIsEdge>
  __device__ __forceinline__ void add_chunk(Values& o, Scores& s, const TileRows& tile, uint32_t chunk, uint32_t half,
                                            Row (&rows)[2]) const {
    Range seen[2];
    tile.seen_of(rows, chunk, seen);
    RowChunk of[2];
    exponentials<kIsEdge>(s, seen, of, [](uint32_t, int, float p) { return p; }, __uint_as_float(kUnseen));
#pragma unroll
    for (int r = 0; r < 2; ++r) rows[r].join(of[r], chunk);
#pragma unroll
    for (uint32_t b = 0; b < kBlocks; ++b) {
      if (b * kv::kBlock >= c.v_head_dim) continue;
      Digits weights[4];
      float d[2];
      weigh<kIsEdge>(s, shared.d_v[half][b], weights, d);
      sum_values(o, b, weights, rows, d);
    }
  }

  // y of the warp's rows, rotated back: value 8 tile + lane % 4 * 2 + e of a row.
  __device__ __forceinline__ void write(const Values& o, const Row (&rows)[2], const TileRows& of_tile) const {
    constexpr auto signs = rotated::copied(kv::kSigns);
    const uint32_t tiles = c.v_head_dim / 8;
    const float part = 1.0f / static_cast<float>(c.v_head_dim);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float y[kValueTiles][2];
      const uint32_t of_sink = min(TileRows::own(r), of_tile.n() - 1);
      const auto sink = factors_of_sink(args, of_tile.head_of(of_sink) % c.n_heads, rows[r].most);
      const float by = exact::rcp(rows[r].sum * sink.of_total + sink.share);
#pragma unroll
      for (uint32_t tile = 0; tile < kValueTiles; ++tile) {
        float all[4] = {};
        if (tile < tiles) load_values(o, tile, all);
        const float a = all[2 * r] * sink.of_total * by, b = all[2 * r + 1] * sink.of_total * by;
        y[tile][0] = a + b, y[tile][1] = a - b;
#pragma unroll
        for (int h = 1; h < 4; h *= 2)
#pragma unroll
          for (float& v : y[tile]) {
            const float other = __shfl_xor_sync(0xFFFFFFFFu, v, h);
            v = (lane() & h) != 0 ? other - v : v + other;
          }
      }
#pragma unroll
      for (uint32_t h = 1; h < kValueTiles; h *= 2) {
        if (h >= tiles) continue;
#pragma unroll
        for (uint32_t tile = 0; tile < kValueTiles; ++tile) {
          if ((tile & h) != 0) continue;
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const float a = y[tile][e], b = y[tile + h][e];
            y[tile][e] = a + b, y[tile + h][e] = a - b;
          }
        }
      }
      const uint32_t row = TileRows::own(r);
      if (row >= of_tile.n()) continue;
      float* to = args.buffer<float>(binding::Attention::y) + of_tile.head_of(row) * c.v_head_dim + lane() % 4 * 2;
#pragma unroll
      for (uint32_t tile = 0; tile < kValueTiles; ++tile) {
        if (tile >= tiles) continue;
        const uint32_t bits = signs.of[tile / 4] >> (tile % 4 * 8) >> (lane() % 4 * 2);
        *reinterpret_cast<float2*>(to + tile * 8) = make_float2(((bits & 1) != 0 ? -y[tile][0] : y[tile][0]) * part,
                                                                ((bits & 2) != 0 ? -y[tile][1] : y[tile][1]) * part);
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
    stage(own_page(tile.pages, chunk, range), range);
    keep_scales(ask_scales(tile.pages + chunk * kPages, range), 0);
    QScales d_q = {};
    quantize_q(tile, d_q);
    Values o = {};
    const bool has_rows = TileRows::first_of_warp() < tile.n();
    uint32_t half = 0;
#pragma unroll 1
    for (;; half ^= 1) {
      wait_for_copy_batches<0>();
      __syncthreads();  // codes and scales are there, and nobody reads the tiles any more
      const bool is_last = chunk == tile.last_chunk;
      make_tiles(range);
      Scores s;
      if (kIsR8 && has_rows) score(s, d_q, half);
      __syncthreads();  // the tiles are there, and nobody reads codes any more
      if (!is_last) {
        range = tile.range_of(chunk + 1);
        stage(own_page(tile.pages, chunk + 1, range), range);
        keep_scales(ask_scales(tile.pages + (chunk + 1) * kPages, range), half ^ 1);
      }
      if (has_rows) {
        if (!kIsR8) score(s, d_q, half);
        if (tile.is_edge(chunk))
          add_chunk<true>(o, s, tile, chunk, half, rows);
        else
          add_chunk<false>(o, s, tile, chunk, half, rows);
      }
      if (is_last) break;
      ++chunk;
    }
    let_next_start();
    if (has_rows) write(o, rows, tile);
  }
};

template <bool kIsR8, uint32_t kWidth>
__device__ __forceinline__ void attend_rotated_tile(const OpArgs& args) {
  using A = Attend<kIsR8, kWidth>;
  ZRT_DYNAMIC_SHARED(uint4, memory);
  __shared__ __align__(16) Shared<A::kBlocks> shared;
  wait_for_inputs();
  const A attend(args, blockIdx.x, shared, memory);
  for_own_tiles<kThreads>(args, reinterpret_cast<uint32_t*>(memory), [&](Tokens tokens) { attend.run(tokens); });
}

extern "C" __global__ void __launch_bounds__(kThreads, 3) flash_attn_tile_r8_64(const __grid_constant__ OpArgs args) {
  attend_rotated_tile<true, 64>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 2) flash_attn_tile_r8_128(const __grid_constant__ OpArgs args) {
  attend_rotated_tile<true, 128>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 1) flash_attn_tile_r8_256(const __grid_constant__ OpArgs args) {
  attend_rotated_tile<true, 256>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 3) flash_attn_tile_r4_64(const __grid_constant__ OpArgs args) {
  attend_rotated_tile<false, 64>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 2) flash_attn_tile_r4_128(const __grid_constant__ OpArgs args) {
  attend_rotated_tile<false, 128>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 1) flash_attn_tile_r4_256(const __grid_constant__ OpArgs args) {
  attend_rotated_tile<false, 256>(args);
}
