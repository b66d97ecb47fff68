// Computes FLASH_ATTN_BATCHED over caches of rotated codes, for steps in which a slot may have several tokens: guesses,
// and short prompts. The bits are those of kernels/cpu/flash_attn.cpp. token_runs.cuh explains runs and columns.
// The workgroups of a run take its chunks in turn. Each chunk leaves a record for each token, and
// flash_attn_merge_rotated merges the records.
// Scores are computed for eight columns at a time from the same registers. Weights: each warp makes the digits of four
// columns at once. Values: each warp unpacks 32 values of all tokens once, and multiplies them by the weights of all
// columns.
// Grid: (at least one workgroup per token, kv heads). The workgroups are divided among the runs by the kernel, because
// the number of runs is known only in the step.
#include "kernels/cuda/rotated_chunk.cuh"
#include "kernels/cuda/token_runs.cuh"

using namespace zinc_rt::cuda;

struct Shared {
  // Scores without the scale of q. Rows are padded so that what a warp reads at once lies in different banks.
  float scores[kMostColumns][kChunk + 8];
  float d[kMostBlocks][kMostColumns];  // scales of the weights' codes
  uint32_t heads[kMostColumns];        // each column's head, numbered through all tokens of the step
  bool is_seen[kMostColumns];          // whether the column's token sees a token of the chunk
};
static_assert(sizeof(Shared) <= kAttendRunShared);

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

  const Run of;
  const uint32_t group;

  // Returns where the digits of the weights of four columns lie, for a block of values. They are laid out for products
  // of 32 tokens.
  static __device__ __forceinline__ uint2 (*digits_at(uint2* weights, uint32_t block, uint32_t first))[32] {
    return reinterpret_cast<uint2(*)[32]>(weights + (block * (kMostColumns / 4) + first / 4) * 4 * 32);
  }

  // Converts the scores of four columns to the digits of their weights, and writes each column's maximum and sum to its
  // record.
  __device__ __forceinline__ void weigh(Shared& shared, uint2* weights, const uint16_t* scales, uint32_t first,
                                        uint32_t n_columns, uint32_t pos, uint32_t chunk) const {
    const uint32_t column = first + FourColumns::of_lane(), n_blocks = c.v_head_dim / kv::kBlock;
    const bool is_there = column < n_columns, is_writer = is_there && FourColumns::lane() == 0;
    const Range seen = is_there ? seen_by(c.window, pos + column / group, chunk) : Range{0, 0};
    const ColumnScores scores(c, shared.scores[column], c.scale * rotated::inverse_of(c.head_dim), seen);
#pragma unroll 1
    for (uint32_t b = 0; b < n_blocks; ++b) {
      const float d = make_digits_of_four<0x5410>(
          scores, [&](uint32_t token) { return rotated::value_scale(scales[token * n_blocks + b]); }, seen,
          digits_at(weights, b, first));
      if (is_writer) shared.d[b][column] = d;
    }
    if (!is_writer) return;
    shared.is_seen[column] = seen.begin < seen.end;
    if (seen.begin >= seen.end) return;
    float* to = record_at(args, shared.heads[column], chunk) + c.v_head_dim;
    to[0] = scores.most, to[1] = scores.sum;
  }

  // Computes the sums of the chunk's values for all columns, and writes them to the columns' records.
  __device__ __forceinline__ void sum_values(Shared& shared, uint2* weights, const uint8_t* values, uint32_t n_columns,
                                             uint32_t chunk) const {
#pragma unroll 1
    for (uint32_t vector = warp(); vector < c.v_head_dim / 32; vector += kWarps) {
      const uint32_t block = vector / 2, value = block * kv::kBlock + vector % 2 * 16 + lane() / 4 * 2;
      const uint8_t* codes = values + vector * 16 + lane() * value_pitch();
      const typename Chunk::Values v[4] = {
          typename Chunk::Values(codes), typename Chunk::Values(codes + 32 * value_pitch()),
          typename Chunk::Values(codes + 64 * value_pitch()), typename Chunk::Values(codes + 96 * value_pitch())};
#pragma unroll 1
      for (uint32_t first = 0; first < n_columns; first += 4) {
        const uint2(*digits)[32] = digits_at(weights, block, first);
        int sums[2][4] = {};
#pragma unroll
        for (uint32_t s = 0; s < 4; ++s) {
          const uint2 b = digits[s][lane()];
          mma32<true>(sums[0], v[s].low, b);
          mma32<true>(sums[1], v[s].high, b);
        }
        const uint32_t column = first + lane() % 4;
        if (column >= n_columns || !shared.is_seen[column]) continue;
        float* to = record_at(args, shared.heads[column], chunk) + value;
        const float d = shared.d[block][column];
#pragma unroll
        for (uint32_t part = 0; part < 2; ++part)
          *reinterpret_cast<float2*>(to + part * 32) =
              make_float2(rotated::joined_digits(sums[part][0], sums[part][1]) * d,
                          rotated::joined_digits(sums[part][2], sums[part][3]) * d);
      }
    }
  }

  __device__ __forceinline__ void run(Shared& shared, uint8_t* memory) const {
    const uint32_t n_columns = of.n * group, n_blocks = c.head_dim / kv::kBlock, q_words = n_blocks * 2 * 32;
    const RunChunks chunks(args, c, of);
    uint32_t chunk = chunks.first_chunk;
    const bool is_early = chunks.is_early(of, chunk);
    if (!is_early) wait_for_inputs();
    if (chunk > chunks.last_chunk) return;
    // `memory` holds V of a chunk, the digits of weights, and the codes and scales of q.
    uint8_t* values = memory;
    auto* weights = reinterpret_cast<uint2*>(memory + attend_rotated_value_bytes(c.v_head_dim));
    uint2* q = weights + c.v_head_dim / kv::kBlock * (kMostColumns / 4) * 4 * 32;
    auto* q_scales = reinterpret_cast<float*>(q + (n_columns + kHeads - 1) / kHeads * q_words);
    Range range = chunks.range_of(chunk);
    int32_t own_pages = own_page(chunks.pages, chunk, range);
    Keys keys = {};
    ask_keys(keys, own_pages, range, 0);
    ask_values(values, own_pages, range);
    if (threadIdx.x < n_columns) shared.heads[threadIdx.x] = head_of_column(c, of, kv_head, group, threadIdx.x);
    __syncthreads();
    if (is_early) wait_for_inputs();
    const float* rows = args.template buffer<const float>(binding::Attention::q);
    quantize_q([&](uint32_t column) { return rows + static_cast<uint64_t>(shared.heads[column]) * c.head_dim; },
               n_columns, q, q_scales);
    __syncthreads();
#pragma unroll 1
    for (;;) {
#pragma unroll 1
      for (uint32_t first = 0; first < n_columns; first += kHeads) {
        Dots dots = {};
#pragma unroll 1
        for (uint32_t b = 0; b < n_blocks; b += kKeyBlocks) {
          if (b > 0 || (first > 0 && n_blocks > kKeyBlocks)) ask_keys(keys, own_pages, range, b);
          add_dots(dots, keys, b, q + first / kHeads * q_words, q_scales + first / kHeads * n_blocks * kHeads);
        }
#pragma unroll
        for (uint32_t i = 0; i < 2; ++i)
          *reinterpret_cast<float4*>(shared.scores[first + lane() % 4 * 2 + i] + warp() * 32 + lane() / 4 * 4) =
              make_float4(dots[0][i], dots[0][2 + i], dots[1][i], dots[1][2 + i]);
      }
      const uint32_t next = chunk + of.n_parts;
      const bool is_last = next > chunks.last_chunk;
      if (!is_last) {
        range = chunks.range_of(next);
        own_pages = own_page(chunks.pages, next, range);
        ask_keys(keys, own_pages, range, 0);
      }
      wait_for_copy_batches<0>();
      __syncthreads();  // scores and values are written
#pragma unroll 1
      for (uint32_t first = warp() * 4; first < n_columns; first += kWarps * 4)
        weigh(shared, weights, scales_of_values(values), first, n_columns, chunks.pos, chunk);
      __syncthreads();
      sum_values(shared, weights, values, n_columns, chunk);
      if (is_last) break;
      __syncthreads();  // no warp reads the values any more
      ask_values(values, own_pages, range);
      chunk = next;
    }
  }
};

template <bool kIsR8, uint32_t kDim>
__device__ __forceinline__ void attend_rotated_runs(const OpArgs& args) {
  ZRT_DYNAMIC_SHARED(uint4, memory);
  __shared__ __align__(16) Shared shared;
  with_own_run<kDim>(args, [&](const push::FlashAttn& c, const Run& run) {
    Attend<kIsR8>{{args, c, blockIdx.y}, run, args.symbols[symbol::AttentionRuns::group]}.run(
        shared, reinterpret_cast<uint8_t*>(memory));
  });
}

// The kernels are for heads of 128 values, and of other sizes.
extern "C" __global__ void __launch_bounds__(kThreads, 4) flash_attn_runs_r8_128(const __grid_constant__ OpArgs args) {
  attend_rotated_runs<true, 128>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 4) flash_attn_runs_r4_128(const __grid_constant__ OpArgs args) {
  attend_rotated_runs<false, 128>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 4) flash_attn_runs_r8(const __grid_constant__ OpArgs args) {
  attend_rotated_runs<true, 0>(args);
}
extern "C" __global__ void __launch_bounds__(kThreads, 4) flash_attn_runs_r4(const __grid_constant__ OpArgs args) {
  attend_rotated_runs<false, 0>(args);
}
