// Computes FLASH_ATTN_BATCHED over caches of 16-bit integers, for steps in which a slot may have several tokens:
// guesses, and short prompts. The bits are those of kernels/cpu/flash_attn.cpp.
// A run is up to run_tokens neighbouring tokens of a slot (token_runs.cuh). Each workgroup computes the query heads of
// one kv head for all tokens of a run. These (token, head) pairs are its columns, and they share one read of K and V.
// The workgroups of a run take its chunks in turn. Each chunk leaves a record for each token, and flash_attn_merge
// merges the records.
// Scores and values are computed as in integer_chunk.cuh, for 4 kTiles columns at a time from the same registers.
// Weights: each warp makes the digits of four columns at once.
// Grid: (at least one workgroup per token, kv heads). The workgroups are divided among the runs by the kernel, because
// the number of runs is known only in the step.
#include "kernels/cuda/integer_chunk.cuh"
#include "kernels/cuda/token_runs.cuh"

using namespace zinc_rt::cuda;

constexpr uint32_t kTiles = 2;

struct Shared {
  // Scores without the scale of q. Rows are padded so that what a warp reads at once lies in different banks.
  float scores[kMostColumns][kChunk + 8];
  uint2 weights[kMostColumns / 4][4][32];  // digits, laid out for products of 32 tokens
  float d[kMostColumns];                   // scales of the weights' codes
  float d_v[kChunk];                       // scales of the tokens' values
  uint32_t heads[kMostColumns];            // each column's head, numbered through all tokens of the step
  bool is_seen[kMostColumns];              // whether the column's token sees a token of the chunk
};
static_assert(sizeof(Shared) <= kAttendRunShared);

struct Attend : IntegerChunk {
  const Run of;
  const uint32_t group;

  // Makes digits of the columns' q, and the factors of their scores. If the last four columns are not complete, the
  // missing ones get digits that are 0.
  __device__ __forceinline__ void quantize_q(const Shared& shared, uint32_t n_columns, uint2* q, float* scales) const {
    const float* rows = args.buffer<const float>(binding::Attention::q);
    const auto row = [&](uint32_t column) { return rows + static_cast<uint64_t>(shared.heads[column]) * c.head_dim; };
    if (c.head_dim % 32 != 0 || c.head_dim > kBlock) {
      for (uint32_t column = warp(); column < (n_columns + 3) / 4 * 4; column += kWarps)
        quantize_head(c, column < n_columns ? row(column) : nullptr, column, q, scales);
      return;
    }
    const uint32_t steps = c.head_dim / 32, at = FourColumns::lane();
    for (uint32_t first = warp() * 4; first < n_columns; first += kWarps * 4) {
      const uint32_t column = first + FourColumns::of_lane();
      const bool is_there = column < n_columns;
      const float* x = row(is_there ? column : first) + at * 4;
      float4 v[kSteps];
      float most = 0.0f;
#pragma unroll
      for (uint32_t s = 0; s < kSteps; ++s)
        v[s] = is_there && s < steps ? *reinterpret_cast<const float4*>(x + s * 32) : float4{};
#pragma unroll
      for (uint32_t s = 0; s < kSteps; ++s)
        for (const float of : {v[s].x, v[s].y, v[s].z, v[s].w}) most = max_or_nan(most, of < 0 ? -of : of);
      const CodeScale scale = code_scale(FourColumns::largest_or_nan(most));
#pragma unroll
      for (uint32_t s = 0; s < kSteps; ++s) {
        if (s >= steps) continue;
        const auto put = [&](uint32_t i, float a, float b) {
          const uint32_t bits_a = code_bits(a, scale.inverse), bits_b = code_bits(b, scale.inverse),
                         value = s * 32 + at * 4 + i;
          *reinterpret_cast<uint16_t*>(q_digits(q, steps, column, 0, value)) =
              static_cast<uint16_t>(__byte_perm(bits_a, bits_b, 0x51));
          *reinterpret_cast<uint16_t*>(q_digits(q, steps, column, 1, value)) =
              static_cast<uint16_t>(__byte_perm(bits_a, bits_b, 0x40) ^ kLowBits);
        };
        put(0, v[s].x, v[s].y);
        put(2, v[s].z, v[s].w);
      }
      if (at == 0 && is_there) scales[column] = c.scale * scale.d;
    }
  }

  // Converts the scores of four columns to the digits of their weights, and writes each column's maximum and sum to its
  // record.
  __device__ __forceinline__ void weigh(Shared& shared, const float* scales_of_q, uint32_t first, uint32_t n_columns,
                                        uint32_t pos, uint32_t chunk) const {
    const uint32_t column = first + FourColumns::of_lane();
    const bool is_there = column < n_columns;
    const Range seen = is_there ? seen_by(c.window, pos + column / group, chunk) : Range{0, 0};
    const ColumnScores scores(c, shared.scores[column], is_there ? scales_of_q[column] : 0.0f, seen);
    const float d = make_digits_of_four<0x5140>(
        scores, [&](uint32_t token) { return shared.d_v[token]; }, seen, shared.weights[first / 4]);
    if (FourColumns::lane() > 0 || !is_there) return;
    shared.is_seen[column] = seen.begin < seen.end;
    shared.d[column] = d;
    if (seen.begin >= seen.end) return;
    float* to = record_at(args, shared.heads[column], chunk) + c.v_head_dim;
    to[0] = scores.most, to[1] = scores.sum;
  }

  __device__ __forceinline__ void run(Shared& shared, uint2* memory) const {
    const uint32_t n_columns = of.n * group, q_steps = (c.head_dim + 31) / 32;
    const RunChunks chunks(args, c, of);
    uint32_t chunk = chunks.first_chunk;
    const bool is_early = chunks.is_early(of, chunk);
    if (!is_early) wait_for_inputs();
    if (chunk > chunks.last_chunk) return;
    // `memory` holds the digits of the columns' q, then the factors of their scores.
    float* scales_of_q = reinterpret_cast<float*>(memory + (n_columns + 3) / 4 * q_steps * 32);
    Range range = chunks.range_of(chunk);
    int32_t own_pages = own_page(chunks.pages, chunk, range);
    Codes codes = {};
    KeyPlace keys = find_keys(own_pages, range);
    ask_keys(codes, keys.page, 0);
    if (threadIdx.x < n_columns) shared.heads[threadIdx.x] = head_of_column(c, of, kv_head, group, threadIdx.x);
    __syncthreads();
    if (is_early) wait_for_inputs();
    quantize_q(shared, n_columns, memory, scales_of_q);
    __syncthreads();
#pragma unroll 1
    for (;;) {
      const uint32_t next = chunk + of.n_parts;
      const float d_v = ask_value_scale(own_pages, range);
#pragma unroll 1
      for (uint32_t first = 0; first < n_columns; first += 4 * kTiles) {
        const uint32_t n = min(4 * kTiles, n_columns - first);
        const uint2* digits = memory + first / 4 * q_steps * 32;
        Sums<kTiles> sums = {};
#pragma unroll 1
        for (uint32_t at = 0; at < c.head_dim; at += kBlock) {
          if (at > 0 || (first > 0 && c.head_dim > kBlock)) ask_keys(codes, keys.page, at);
#pragma unroll
          for (uint32_t s = 0; s < kSteps; ++s)
            if (at / 32 + s < q_steps) add(sums, codes[s], digits + (at / 32 + s) * 32, q_steps * 32, n);
        }
#pragma unroll
        for (uint32_t tile = 0; tile < kTiles; ++tile) {
          if (tile * 4 >= n) continue;
          const float4 v = join(sums[tile]);
          const uint2 d = keys.scales;
          *reinterpret_cast<float4*>(shared.scores[first + tile * 4 + lane() % 4] + warp() * 32 + lane() / 4 * 4) =
              make_float4(v.x * __uint_as_float(d.x << 16), v.y * __uint_as_float(d.x & 0xFFFF0000u),
                          v.z * __uint_as_float(d.y << 16), v.w * __uint_as_float(d.y & 0xFFFF0000u));
        }
      }
      shared.d_v[threadIdx.x] = d_v;
      __syncthreads();
      ask_values(codes, own_pages, range, 0);
#pragma unroll 1
      for (uint32_t first = warp() * 4; first < n_columns; first += kWarps * 4)
        weigh(shared, scales_of_q, first, n_columns, chunks.pos, chunk);
      __syncthreads();
#pragma unroll 1
      for (uint32_t at = 0; at < c.v_head_dim; at += kBlock) {
        if (at > 0) ask_values(codes, own_pages, range, at);
        const uint32_t i = at + warp() * 32 + lane() / 4 * 4;
#pragma unroll 1
        for (uint32_t first = 0; first < n_columns; first += 4 * kTiles) {
          const uint32_t n = min(4 * kTiles, n_columns - first);
          Sums<kTiles> sums = {};
#pragma unroll
          for (uint32_t s = 0; s < 4; ++s) add(sums, codes[s], shared.weights[first / 4][s], 4 * 32, n);
#pragma unroll
          for (uint32_t tile = 0; tile < kTiles; ++tile) {
            const uint32_t column = first + tile * 4 + lane() % 4;
            if (column >= n_columns || i >= c.v_head_dim || !shared.is_seen[column]) continue;
            const float4 o = join(sums[tile]);
            const float d = shared.d[column];
            *reinterpret_cast<float4*>(record_at(args, shared.heads[column], chunk) + i) =
                make_float4(o.x * d, o.y * d, o.z * d, o.w * d);
          }
        }
      }
      if (next > chunks.last_chunk) break;
      chunk = next;
      range = chunks.range_of(chunk);
      own_pages = own_page(chunks.pages, chunk, range);
      keys = find_keys(own_pages, range);
      ask_keys(codes, keys.page, 0);
    }
  }

  // Returns the scale of V of the chunk's token whose number is the thread's.
  __device__ __forceinline__ float ask_value_scale(int32_t own_pages, Range range) const {
    const uint32_t own = threadIdx.x / 16;
    const int32_t page = page_of(own_pages, own);
    if (!has_page(range, own)) return 0.0f;
    const auto* scales = reinterpret_cast<const uint16_t*>(page_at(args, false, page) +
                                                           kv_integer::scales_at(kv_head, c.n_kv_heads, c.v_head_dim));
    return __uint_as_float(static_cast<uint32_t>(scales[threadIdx.x % 16]) << 16);
  }
};

template <uint32_t kDim>
__device__ __forceinline__ void attend_integer_runs(const OpArgs& args) {
  ZRT_DYNAMIC_SHARED(uint2, memory);
  __shared__ __align__(16) Shared shared;
  with_own_run<kDim>(args, [&](const push::FlashAttn& c, const Run& run) {
    Attend{{args, c, blockIdx.y}, run, args.symbols[symbol::AttentionRuns::group]}.run(shared, memory);
  });
}

// The kernels are for heads of 128 values, of 64, and of other sizes.
extern "C" __global__ void __launch_bounds__(kThreads, 4) flash_attn_runs_i16_128(const __grid_constant__ OpArgs args) {
  attend_integer_runs<128>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 4) flash_attn_runs_i16_64(const __grid_constant__ OpArgs args) {
  attend_integer_runs<64>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 4) flash_attn_runs_i16(const __grid_constant__ OpArgs args) {
  attend_integer_runs<0>(args);
}
