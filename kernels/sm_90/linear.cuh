// Rows of W (quantized, weights.cuh) times rows of x (quantized, args.h): y[t][m] = dot(w[m], x[t]) + bias[m], in the
// order of docs/arithmetic.md, rule 3. A workgroup has kTiles tiles of 16 rows of W and 8 kColumns rows of x; its 8
// warps take groups of 256 in turn, each by mma.m16n8k32 (or k16, where scales are of 16 values), and leave the group's
// v in shared memory, from where threads add them up in order. Integer sums are exact in any order, so neither shape
// changes a bit.
#pragma once

#include "kernels/sm_90/linear_job.cuh"

namespace zinc_rt::cuda {

constexpr int kColumnPitch = 20;  // floats from a column of v to the next: no bank twice in a store

// The bits of a group that a lane of a warp wants of one tile.
template <Format F>
struct Group {
  using T = Traits<F>;
  static constexpr int kSteps = 8;
  Step steps[kSteps];
  uint32_t scales[2][T::kBlock == 32 ? kSteps : 4];  // of rows lane / 4 and lane / 4 + 8
  uint32_t b[2];

  // n_steps: 8, or fewer in the last group. In a tile: from whole vectors.
  __device__ __forceinline__ void load(const uint8_t* group, uint32_t n_steps, uint32_t lane) {
#pragma unroll
    for (int s = 0; s < kSteps; ++s)
      if (T::kBlock == 256 || s < n_steps) steps[s] = load_step<F>(group, n_steps, s, lane);
    const uint8_t* at = group + planes_bytes<F>(n_steps);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const uint32_t row = lane / 4 + 8 * r;
      if constexpr (T::kBlock == 32) {
#pragma unroll
        for (int s = 0; s < kSteps; ++s)
          if (s < n_steps) scales[r][s] = load_scale<F>(at, s, row);
      } else {
        load_scales<F>(at, row, scales[r], b[r]);
      }
    }
  }
};

// From n_rows rows that lie as in the file, of which row 0 begins this group at `rows`.
template <Format F>
__device__ __noinline__ void load_plain(Group<F>& group, const uint8_t* rows, uint64_t pitch, uint32_t n_rows,
                                        uint32_t n_steps, uint32_t lane) {
  using T = Traits<F>;
  constexpr int kSteps = Group<F>::kSteps;
  for (int s = 0; s < kSteps; ++s)
    if (s < n_steps)
      group.steps[s] = pack_step<F>([&](int j, int i) -> uint32_t {
        const uint32_t row = lane / 4 + j % 2 * 8, k = s * 32 + j / 2 * 16 + lane % 4 * 4 + i;
        return row < n_rows ? code_of<F>(rows + row * pitch + k / T::kBlock * T::kBytes, k % T::kBlock) : 0;
      });
  for (int r = 0; r < 2; ++r) {
    const uint32_t row = lane / 4 + 8 * r;
    const uint8_t* block = rows + row * pitch;
    group.b[r] = 0;
    for (int i = 0; i < (T::kBlock == 32 ? kSteps : 4); ++i) group.scales[r][i] = 0;
    if (row >= n_rows) continue;
    if constexpr (T::kBlock == 32) {
      for (int s = 0; s < kSteps; ++s)
        if (s < n_steps) read_words(block + s * T::kBytes + T::kAOffset, T::kA, &group.scales[r][s]);
    } else {
      read_words(block + T::kAOffset, T::kA, group.scales[r]);
      if constexpr (T::kB > 0) read_words(block + T::kBOffset, T::kB, &group.b[r]);
    }
  }
}

template <Format F, int kTiles, int kColumns>
struct Product {
  using T = Traits<F>;
  static constexpr bool kSigned = T::kP8 != 0 || T::kTable != 0;

  // v of one group, before what adds groups up: v[tile][column tile][c], c as in the C operand.
  __device__ __forceinline__ static void run(const Group<F> (&groups)[kTiles], const Q8Rows& x,
                                             const uint32_t (&b_row)[kColumns], const uint32_t (&c_row)[kColumns][2],
                                             uint32_t k, uint32_t g, uint32_t n_steps, uint32_t lane,
                                             float (&v)[kTiles][kColumns][4]) {
    if constexpr (T::kBlock == 32)
      blocks(groups, x, b_row, c_row, k, g, n_steps, lane, v);
    else
      supers(groups, x, b_row, c_row, k, g, lane, v);
  }

 private:
  __device__ __forceinline__ static uint2 operand_b(const Q8Rows& x, uint32_t row, uint32_t k, uint32_t g, int s,
                                                    uint32_t lane) {
    return *reinterpret_cast<const uint2*>(x.qs + static_cast<uint64_t>(row) * k + g * 256 + s * 32 + lane % 4 * 8);
  }

  __device__ __forceinline__ static void blocks(const Group<F> (&groups)[kTiles], const Q8Rows& x,
                                                const uint32_t (&b_row)[kColumns], const uint32_t (&c_row)[kColumns][2],
                                                uint32_t k, uint32_t g, uint32_t n_steps, uint32_t lane,
                                                float (&v)[kTiles][kColumns][4]) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int n = 0; n < kColumns; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c) v[t][n][c] = 0.0f;
    // Of one column tile all of x is asked for first.
    constexpr int kFirst = kColumns == 1 ? Group<F>::kSteps : 1;
    constexpr bool kSums = T::kOffset != 0 || T::kMin != 0;
    uint2 first_b[kFirst];
    float first_d[kFirst][2];
    int first_sum[kFirst][2];
    const auto ask = [&](int to, int n, int s) {
      first_b[to] = operand_b(x, b_row[n], k, g, s, lane);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const uint64_t block = (static_cast<uint64_t>(c_row[n][i]) * k + g * 256) / 32 + s;
        first_d[to][i] = x.d[block];
        first_sum[to][i] = kSums ? static_cast<const int32_t*>(x.sums)[block] : 0;
      }
    };
    if constexpr (kColumns == 1) {
#pragma unroll
      for (int s = 0; s < kFirst; ++s)
        if (s < n_steps) ask(s, 0, s);
    }
#pragma unroll
    for (int s = 0; s < Group<F>::kSteps; ++s) {
      if (s >= n_steps) break;
      uint32_t a[kTiles][4];
#pragma unroll
      for (int t = 0; t < kTiles; ++t) operand<F>(groups[t].steps[s], a[t]);
#pragma unroll
      for (int n = 0; n < kColumns; ++n) {
        if constexpr (kColumns > 1) ask(0, n, s);
        const int here = kColumns == 1 ? s : 0;
        const uint2 b = first_b[here];
        const float(&dx)[2] = first_d[here];
        const int(&sum)[2] = first_sum[here];
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
          int c[4] = {-T::kOffset * sum[0], -T::kOffset * sum[1], -T::kOffset * sum[0], -T::kOffset * sum[1]};
          mma32<kSigned>(c, a[t], b);
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const uint32_t scale = groups[t].scales[i / 2][s];
            v[t][n][i] = __fmaf_rn(static_cast<float>(c[i]) * block_scale<F>(scale), dx[i % 2], v[t][n][i]);
            if constexpr (T::kMin != 0)
              v[t][n][i] = __fmaf_rn(static_cast<float>(sum[i % 2]) * block_min(scale), dx[i % 2], v[t][n][i]);
          }
        }
      }
    }
  }

  __device__ __forceinline__ static void supers(const Group<F> (&groups)[kTiles], const Q8Rows& x,
                                                const uint32_t (&b_row)[kColumns], const uint32_t (&c_row)[kColumns][2],
                                                uint32_t k, uint32_t g, uint32_t lane,
                                                float (&v)[kTiles][kColumns][4]) {
    KScales scales[kTiles][2];
    int isum[kTiles][kColumns][4] = {};
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int r = 0; r < 2; ++r) scales[t][r] = k_scales<F>(groups[t].scales[r], groups[t].b[r]);
    // Of one column tile all of x is asked for first.
    uint2 first_b[kColumns == 1 ? 8 : 1];
    if constexpr (kColumns == 1) {
#pragma unroll
      for (int s = 0; s < 8; ++s) first_b[s] = operand_b(x, b_row[0], k, g, s, lane);
    }
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      uint32_t a[kTiles][4];
#pragma unroll
      for (int t = 0; t < kTiles; ++t) operand<F>(groups[t].steps[s], a[t]);
#pragma unroll
      for (int n = 0; n < kColumns; ++n) {
        const uint2 b = kColumns == 1 ? first_b[s] : operand_b(x, b_row[n], k, g, s, lane);
        int begin[2][4] = {};
        if constexpr (T::kOffset != 0) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int sums = sums_of(x, c_row[n][i % 2], k, g)[s];  // two of 16 values
            begin[0][i] = -T::kOffset * static_cast<int16_t>(sums);
            begin[1][i] = -T::kOffset * (sums >> 16);
          }
        }
#pragma unroll
        for (int t = 0; t < kTiles; ++t) add_step<F, kSigned>(isum[t][n], a[t], b, scales[t], s, begin);
      }
    }
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
      int msum[kTiles][4] = {};
      if constexpr (T::kMin != 0) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const uint4* at = reinterpret_cast<const uint4*>(sums_of(x, c_row[n][i], k, g));
          const uint4 low = at[0], high = at[1];
          const uint32_t sums[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
          for (int t = 0; t < kTiles; ++t)
#pragma unroll
            for (int r = 0; r < 2; ++r) {
              int& sum = msum[t][2 * r + i];
#pragma unroll
              for (int p = 0; p < 4; ++p) {  // four minimums of 16 values, or two of 32
                const uint32_t m = T::kSub == 16 ? scales[t][r].m[p]
                                                 : __byte_perm(scales[t][r].m[p / 2], 0, p % 2 == 0 ? 0x1100 : 0x3322);
                sum = __dp2a_lo(static_cast<int>(sums[2 * p]), static_cast<int>(m), sum);
                sum = __dp2a_hi(static_cast<int>(sums[2 * p + 1]), static_cast<int>(m), sum);
              }
            }
        }
      }
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const KScales& s = scales[t][i / 2];
          const float sum = static_cast<float>(isum[t][n][i]);
          v[t][n][i] = T::kMin != 0 ? __fmaf_rn(sum, s.d, static_cast<float>(msum[t][i]) * -s.dmin) : sum * s.d;
        }
    }
  }
  __device__ __forceinline__ static const int* sums_of(const Q8Rows& x, uint32_t row, uint32_t k, uint32_t g) {
    return reinterpret_cast<const int*>(static_cast<const int16_t*>(x.sums) +
                                        (static_cast<uint64_t>(row) * k + g * 256) / 16);
  }
};

template <int kTiles, int kColumns>
ZRT_CUDA_HD uint32_t linear_shared_bytes() {
  return 2 * kWarps * kTiles * kColumns * 8 * kColumnPitch * 4;
}

// Grid: blocks of kTiles tiles of all parts, column tiles, items of experts. A warp asks for the weights of kAhead of
// its groups before it computes the first: before the inputs are there, where the weights do not depend on them.
template <Format F, int kTiles, int kColumns, int kAhead>
__device__ __forceinline__ void linear(const LinearArgs& args) {
  using T = Traits<F>;
  ZRT_DYNAMIC_SHARED(float, shared);
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t k = args.k, n_groups = (k + 255) / 256, last_steps = (k - (n_groups - 1) * 256) / 32;
  const uint64_t row_bytes = row_bytes_of<F>(k);
  const bool is_dense = args.choices == 0;
  Group<F> ahead[kAhead][kTiles];
  Job job;
  const auto load = [&](Group<F>(&groups)[kTiles], uint32_t g) {
    if (g >= n_groups) return;
    const uint32_t n_steps = g + 1 < n_groups ? 8 : last_steps;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const uint32_t tile = job.first_tile + t, rows = job.part->rows;
      const uint64_t at = row_bytes_of<F>(g * 256);
      if (tile < rows / 16) {
        groups[t].load(job.w + tile * 16 * row_bytes + 16 * at, n_steps, lane);
      } else {  // rare, and through memory, which the other way must not go
        Group<F> plain;
        load_plain(plain, job.w + tile * 16 * row_bytes + at, row_bytes, tile * 16 < rows ? rows - tile * 16 : 0,
                   n_steps, lane);
        groups[t] = plain;
      }
    }
  };
  // Weights never change, so those of the first group are on their way before the inputs are there.
  if (is_dense) {
    job = job_of<kTiles>(args, 0);
#pragma unroll
    for (int a = 0; a < kAhead; ++a) load(ahead[a], warp + a * kWarps);
  }
  wait_for_inputs();
  let_next_start();
  const uint32_t n_rows = rows_of_x(args), first_column = blockIdx.y * 8 * kColumns;
  if (is_dense) {
    job.n_columns = n_rows;
  } else {
    job = job_of<kTiles>(args, n_rows);
  }
  if (first_column >= job.n_columns) return;
  if (!is_dense) {
#pragma unroll
    for (int a = 0; a < kAhead; ++a) load(ahead[a], warp + a * kWarps);
  }
  const Q8Rows x = q8_rows(const_cast<void*>(args.x), static_cast<uint64_t>(n_rows) * (is_dense ? 1 : args.x_rows), k);
  // Columns past the last read its row again.
  const auto row_at = [&](uint32_t column) {
    return x_row(args, job, column < job.n_columns ? column : job.n_columns - 1);
  };
  uint32_t b_row[kColumns], c_row[kColumns][2];
#pragma unroll
  for (int n = 0; n < kColumns; ++n) {
    b_row[n] = row_at(first_column + n * 8 + lane / 4);
    c_row[n][0] = row_at(first_column + n * 8 + lane % 4 * 2);
    c_row[n][1] = row_at(first_column + n * 8 + lane % 4 * 2 + 1);
  }
  constexpr int kValues = kTiles * kColumns * 128, kEach = (kValues + 32 * kWarps - 1) / (32 * kWarps);
  constexpr int kPlane = kTiles * kColumns * 8 * kColumnPitch;  // floats of a group's v
  float acc[kEach] = {};
  uint32_t chain_row[kEach];
#pragma unroll
  for (int e = 0; e < kEach; ++e)
    chain_row[e] = row_at(first_column + (threadIdx.x + e * 32 * kWarps) / 128 % kColumns * 8 + threadIdx.x / 16 % 8);
  float* half = shared;
  const auto round = [&](Group<F>(&groups)[kTiles], uint32_t first) {
    const uint32_t g = first + warp;
    if (g < n_groups) {
      float v[kTiles][kColumns][4];
      Product<F, kTiles, kColumns>::run(groups, x, b_row, c_row, k, g, g + 1 < n_groups ? 8 : last_steps, lane, v);
      load(groups, g + kAhead * kWarps);
      float* to = half + warp * kPlane;
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int n = 0; n < kColumns; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            to[((t * kColumns + n) * 8 + lane % 4 * 2 + i % 2) * kColumnPitch + lane / 4 + i / 2 * 8] = v[t][n][i];
    }
    __syncthreads();
    const uint32_t n_here = n_groups - first < kWarps ? n_groups - first : kWarps;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const uint32_t at = threadIdx.x + e * 32 * kWarps;
      if (at >= kValues) break;
      const float* from = half + at / 16 * kColumnPitch + at % 16;
      if constexpr (T::kBlock == 256) {
        const float* d = x.d + (static_cast<uint64_t>(chain_row[e]) * k) / 256 + first;
        float scale[kWarps];
#pragma unroll
        for (int i = 0; i < kWarps; ++i) scale[i] = i < n_here ? d[i] : 0.0f;
#pragma unroll
        for (int i = 0; i < kWarps; ++i)
          if (i < n_here) acc[e] = __fmaf_rn(from[i * kPlane], scale[i], acc[e]);
      } else {
#pragma unroll
        for (int i = 0; i < kWarps; ++i)
          if (i < n_here) acc[e] = acc[e] + from[i * kPlane];
      }
    }
    half = half == shared ? shared + kWarps * kPlane : shared;
  };
  for (uint32_t first = 0; first < n_groups; first += kAhead * kWarps)
#pragma unroll
    for (int a = 0; a < kAhead; ++a)
      if (first + a * kWarps < n_groups) round(ahead[a], first + a * kWarps);
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const uint32_t at = threadIdx.x + e * 32 * kWarps;
    if (at >= kValues) break;
    const uint32_t m = (job.first_tile + at / 128 / kColumns) * 16 + at % 16;
    const uint32_t column = first_column + at / 128 % kColumns * 8 + at / 16 % 8;
    if (m < job.part->rows && column < job.n_columns) put(args, job, column, m, acc[e]);
  }
}

}  // namespace zinc_rt::cuda
