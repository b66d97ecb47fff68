// A float matrix times several rows of x, with the same bits as float_linear.cuh. A column is a row of x; k is a
// multiple of 16.
// If both factors were read from shared memory, that would limit the speed. So a warp holds a group of 256 values of
// all columns in registers, and reads rows of W from memory directly to registers, kDepth (two) rounds ahead. The GPU
// lanes of a half warp are the 16 lanes of the order of sums.
// Each warp of a workgroup has a group of k. If there are fewer groups than warps, several warps share one and divide
// its rows of W. They store the group sums v in shared memory, where they are added up in order once all warps have
// stored theirs.
#pragma once

#include "kernels/cuda/float_few.cuh"

namespace zinc_rt::cuda {

// The shape of a workgroup: kColumns rows of x, args.block_rows rows of W, and args.sharers warps that share a group.
template <Format F, uint32_t kColumns>
struct FloatColumns {
  static constexpr uint32_t kThreads = kColumnsThreads, kWarps = kThreads / 32;
  static constexpr int kDepth = kColumnsDepth, kHalves = FloatColumnsShape{kColumns}.halves(),
                       kOfHalf = kColumns / kHalves;
  // kRows: rows of W that a half warp multiplies at once, which give 16 group sums v. kRound: rows that the warp
  // multiplies at once, a round.
  static constexpr int kRows = 16 / kOfHalf, kRound = FloatColumnsShape{kColumns}.round();
  // Floats between the group sums v of two rounds. In a round, each lane has one value.
  static constexpr uint32_t kPitch = kColumnsPitch;

  const LinearArgs& args;
  uint32_t lane, half, first_round, n_rounds;  // first_round, n_rounds: the rounds of a block that this warp computes
  const uint8_t* rows_of_block;
  uint32_t last_row, row_bytes;
  // The next weights. Lane l of a half warp has its rows and columns in another order (row j ^ l / kOfHalf, column c ^
  // l % kOfHalf), so that in the fold it always keeps the first half of its sums.
  LaneBits<F> w[kDepth][kRows];
  uint32_t row[kRows];

  __device__ __forceinline__ explicit FloatColumns(const LinearArgs& linear)
      : args(linear), lane(threadIdx.x % 16), half(threadIdx.x / 16 % 2) {
    n_rounds = linear.block_rows / kRound / linear.sharers;
    first_round = threadIdx.x / 32 % linear.sharers * n_rounds;
    row_bytes = linear.k * (F == kF32 ? 4 : 2);
  }
  // The warps compute groups_at_once() groups at a time; group() is the number of this warp's one among them.
  __device__ __forceinline__ uint32_t group() const { return threadIdx.x / 32 / args.sharers; }
  __device__ __forceinline__ uint32_t groups_at_once() const { return kWarps / args.sharers; }

  // Sets `row` to the rows of this half warp in the first of the warp's rounds.
  __device__ __forceinline__ void to_first_row() {
    const uint32_t first = first_round * kRound + (kHalves == 1 ? half * kRows : 0);
#pragma unroll
    for (uint32_t j = 0; j < kRows; ++j) row[j] = first + (j ^ lane / kOfHalf);
  }
  // Loads the half warp's next rows for a group. Rows behind the last are replaced by the last.
  __device__ __forceinline__ void load(LaneBits<F> (&bits)[kRows], uint32_t g, uint32_t n) {
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      bits[j].load(rows_of_block + static_cast<uint64_t>(min(row[j], last_row)) * row_bytes, g * 256, n, lane);
      row[j] += kRound;
    }
  }
  // Begins a block: loads the first kDepth rounds of weights of the warp's first group, unless that is the last,
  // shorter group.
  __device__ __forceinline__ void begin(const Job& job) {
    const uint32_t first_row = job.first_tile * args.block_rows;
    rows_of_block = job.w + static_cast<uint64_t>(first_row) * row_bytes;
    last_row = job.part->rows - 1 - first_row;
    to_first_row();
    if (group() >= args.k / 256) return;
#pragma unroll
    for (int i = 0; i < kDepth; ++i) load(w[i], group(), 256);
  }

  // x of a lane: v[c] is for column c ^ lane.
  struct X {
    float v[kOfHalf][16];
    // Reads x of the warp's group from shared memory.
    __device__ __forceinline__ void read(const float* columns, uint32_t lane) {
#pragma unroll
      for (uint32_t c = 0; c < kOfHalf; ++c)
#pragma unroll
        for (int i = 0; i < 16; ++i) v[c][i] = columns[(c ^ lane % kOfHalf) * 256 + i * 16 + lane];
    }
  };
  // Multiplies the lane's rows by its columns, and folds the sums over the 16 lanes in the order of
  // kernels/common/fold.h. Each lane gets the group sum v of row lane / kOfHalf, column lane % kOfHalf.
  __device__ __forceinline__ static float product(const LaneBits<F> (&bits)[kRows], const X& x) {
    float v[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
#pragma unroll
      for (int j = 0; j < kRows; ++j) {
        const float weight = bits[j].value(i);
#pragma unroll
        for (int c = 0; c < kOfHalf; ++c)
          v[j * kOfHalf + c] = __fmaf_rn(weight, x.v[c][i], i == 0 ? 0.0f : v[j * kOfHalf + c]);
      }
#pragma unroll
    for (int level = 0; level < 4; ++level) {
      const int width = 8 >> level;
#pragma unroll
      for (int p = 0; p < 8; ++p) {
        if (p >= width) break;
        v[p] = v[p] + __shfl_xor_sync(0xFFFFFFFFu, v[p + width], width);
      }
    }
    return v[0];
  }
  // Computes the sums v of a whole group g for this warp's rounds, and stores those of this lane from `to` on.
  // Afterwards w holds the first weights of group `next`, if there is such a group.
  __device__ __forceinline__ void multiply(const X& x, uint32_t g, uint32_t next, float* to) {
#pragma unroll 1
    for (uint32_t i = 0; i < n_rounds; i += kDepth, to += kDepth * kPitch) {
      uint32_t from = g;
      if (i + kDepth == n_rounds) {
        to_first_row();
        // If there is no next group, some rows are loaded again and not used, which costs less than a conditional load.
        if (next < args.k / 256) from = next;
      }
#pragma unroll
      for (int d = 0; d < kDepth; ++d) {
        const float v = product(w[d], x);
        load(w[d], from, 256);
        to[d * kPitch] = v;
      }
    }
  }
  // Computes the sums v of a last group of fewer than 256 values for this warp's rounds, without loading ahead.
  __device__ __forceinline__ void multiply_last(const X& x, uint32_t g, float* to) {
    to_first_row();
#pragma unroll 1
    for (uint32_t i = 0; i < n_rounds; ++i, to += kPitch) {
      load(w[0], g, args.k - g * 256);
      *to = product(w[0], x);
    }
  }
  // Returns the index of the group sum v of row r of the block and column c among the values of a group.
  __device__ __forceinline__ static uint32_t place_of(uint32_t r, uint32_t c) {
    const uint32_t in = r % kRound, at = kHalves == 2 ? c / kOfHalf * 16 + in * kOfHalf + c % kOfHalf
                                                      : in / kRows * 16 + in % kRows * kOfHalf + c;
    return r / kRound * kPitch + at;
  }
};

// The kernel. Grid: (blocks of args.block_rows rows of all parts (matrices), tiles of kColumns rows of x, items of
// experts). An item is rows of x that chose the same expert. Workgroups that share rows of W start one after another,
// so that those rows are read from memory only once.
template <Format F, uint32_t kColumns>
__device__ __forceinline__ void float_linear_columns(const LinearArgs& args) {
  using P = FloatColumns<F, kColumns>;
  constexpr FloatColumnsShape shape{kColumns};
  const uint32_t place = blockIdx.y * gridDim.x + blockIdx.x, block = place / gridDim.y,
                 first_column = place % gridDim.y * kColumns, k = args.k, n_groups = (k + 255) / 256;
  P product{args};
  const bool is_dense = args.choices == 0;
  if (is_dense) product.begin(job_of(args, block, blockIdx.z, 0));
  let_next_start();
  wait_for_inputs();
  const Job job = job_of(args, block, blockIdx.z, rows_of_x(args));
  if (first_column >= job.n_columns) return;
  if (!is_dense) product.begin(job);
  const uint32_t n_columns = min(job.n_columns - first_column, kColumns), at = threadIdx.x % 32;

  // Shared memory: x[warp][column][256]; the sums y; two buffers of v[group]; pointers to the rows of x. y and v are
  // stored round by round, in the order of lanes.
  ZRT_DYNAMIC_SHARED(float, shared);
  const uint32_t n_v = args.block_rows / P::kRound * P::kPitch;
  float* const x_of_warp = shared + threadIdx.x / 32 * shape.x_floats();
  float* const y = shared + P::kWarps * shape.x_floats();
  float* const sums = y + (n_v + 1) / 2 * 2;
  const auto** x_rows = reinterpret_cast<const float**>(sums + 2 * product.groups_at_once() * n_v);
  if (threadIdx.x < n_columns)
    x_rows[threadIdx.x] =
        static_cast<const float*>(args.x) + static_cast<uint64_t>(x_row(args, job, first_column + threadIdx.x)) * k;
  for (uint32_t e = threadIdx.x; e < n_v; e += P::kThreads) y[e] = 0.0f;
  __syncthreads();

  const auto bring_x = [&](uint32_t g) {
    if (g >= n_groups) return;
    const uint32_t n = min(k - g * 256, 256u);
#pragma unroll 2
    for (uint32_t c = 0; c < n_columns; ++c)
#pragma unroll
      for (uint32_t i = at * 4; i < 256; i += 128)
        copy_16_or_zeros(x_of_warp + shape.x_place(c) + i, x_rows[c] + g * 256 + i, i < n);
  };
  bring_x(product.group());
  uint32_t buffer = 0;
  for (uint32_t first = 0; first < n_groups; first += product.groups_at_once(), buffer ^= 1) {
    float* const v = sums + buffer * product.groups_at_once() * n_v;
    if (const uint32_t g = first + product.group(); g < n_groups) {
      wait_for_copies();
      __syncwarp();
      typename P::X x;
      x.read(x_of_warp + shape.x_place(P::kHalves == 2 ? product.half * P::kOfHalf : 0), product.lane);
      __syncwarp();
      const uint32_t next = g + product.groups_at_once();
      bring_x(next);
      float* const to = v + product.group() * n_v + product.first_round * P::kPitch + at;
      if (k - g * 256 >= 256)
        product.multiply(x, g, next, to);
      else
        product.multiply_last(x, g, to);
    }
    __syncthreads();
    const uint32_t n = min(n_groups - first, product.groups_at_once());
    for (uint32_t e = threadIdx.x; e < n_v; e += P::kThreads) {
      float sum = y[e];
      for (uint32_t g = 0; g < n; ++g) sum = sum + v[g * n_v + e];
      y[e] = sum;
    }
  }
  __syncthreads();
  for (uint32_t e = threadIdx.x; e < args.block_rows * kColumns; e += P::kThreads) {
    const uint32_t r = e % args.block_rows, c = e / args.block_rows, m = job.first_tile * args.block_rows + r;
    if (c < n_columns && m < job.part->rows) put(args, job, first_column + c, m, y[P::place_of(r, c)]);
  }
}

}  // namespace zinc_rt::cuda
