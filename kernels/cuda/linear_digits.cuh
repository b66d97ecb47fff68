// Products of up to 64 rows of x with quantized weights of a 256-value format by wgmma (sm_90a), with the arguments and
// the bits of linear.cuh. Codes are multiplied by their sub-scale before the product, as two digits of a byte each
// (digits.cuh), and tensor cores sum up a whole group of 256 values for each digit. (Other kernels multiply each sum of
// 16 or 32 values by its sub-scale, once per row of x.)
// A group is 256 values of k. v is the product of one group of a row of W and of a row of x, before it is multiplied by
// the scale of x.
// A workgroup computes 64 rows of W by all rows of x, or by a tile of them:
// - some warpgroups ("multiplying") take the stages of k in turn, and store v of all pairs of rows in shared memory
// - one warpgroup ("adding") multiplies v by the scales of x and adds up the groups in order
// - of the last warpgroup, one warp copies W and one thread copies x (in the layout that digit_rows.cu writes) to
//   shared memory, several stages ahead
// A stage is one group of k. Or it is several groups of fewer rows of W, which one instruction multiplies together:
// each by the x of all groups of the stage, and only the product with its own x is used. Tensor cores have time for the
// rest, and two or four times as many workgroups share the rows.
#pragma once

#include "kernels/cuda/digits.cuh"
#include "kernels/cuda/fixed_columns.cuh"
#include "kernels/cuda/stages.cuh"

#if defined(ZRT_HAS_WGMMA)
namespace zinc_rt::cuda {

// Copies kTiles tiles of W (16 rows each) to stages of kGroups groups of 256 values. A warp calls it, and each lane
// copies one tile. In a stage, W lies behind x_bytes bytes of x: first all groups of the first tile, then those of the
// next.
template <Format F, uint32_t kTiles, uint32_t kGroups = 1>
__device__ __forceinline__ void copy_groups_of_w(Stages& stages, uint32_t x_bytes, const Job& job, uint32_t k,
                                                 uint32_t lane) {
  constexpr uint32_t kTileBytes = 16 * Traits<F>::kBytes;
  const uint8_t* from = job.w + min(job.first_tile + lane % kTiles, job.part->rows / 16 - 1) * 16 * row_bytes_of<F>(k);
  for (uint32_t g = 0; g < k / 256; g += kGroups, from += kGroups * kTileBytes, stages.advance()) {
    const uint32_t bytes = min(kGroups, k / 256 - g) * kTileBytes;
    stages.wait_empty();
    if (lane == 0) barrier_expect(stages.full + stages.stage, kTiles * bytes);
    __syncwarp();
    if (lane < kTiles)
      bulk_copy(stages.address() + x_bytes + lane * kGroups * kTileBytes, from, bytes, stages.full + stages.stage);
  }
}
// Copies a tile of x to stages, one group per stage. One thread calls it.
__device__ __forceinline__ void copy_groups_of_x(Stages& stages, uint32_t x_bytes, const uint8_t* from,
                                                 uint32_t n_groups) {
  for (uint32_t g = 0; g < n_groups; ++g, from += x_bytes, stages.advance()) {
    stages.wait_empty();
    barrier_expect(stages.full + stages.stage, x_bytes);
    bulk_copy(stages.address(), from, x_bytes, stages.full + stages.stage);
  }
}

// The work of a workgroup with shape number kIndex of kDigitsShapes. Each role (copying, multiplying, adding) calls one
// of the public functions.
template <Format F, int kIndex>
struct DigitsProduct {
  using T = Traits<F>;
  static constexpr bool kIsFixed = F == kFixed16;
  static constexpr DigitsShape kShape = kDigitsShapes[kIndex];
  static constexpr uint32_t kColumns = kShape.columns, kSplits = kShape.splits, kGroups = kShape.groups,
                            kAllColumns = kGroups * kColumns, kTiles = digits_rows(kGroups) / 16,
                            kTileBytes = 16 * T::kBytes;
  // The layout of a stage: first x of its groups, then the tiles of W, each with its groups one after another. Of x,
  // the first halves (128 values) of all groups come first, then the second halves, because an instruction reads the
  // rows of all groups one after another; then the rest (sums and scales) of each group.
  static constexpr uint32_t kHalf = kColumns * (kIsFixed ? 256 : 128), kRest = kColumns * (kIsFixed ? 4 : 36),
                            kXBytes = tile_x_bytes(kActOf<F>, kColumns), kAllXBytes = kGroups * kXBytes,
                            kStageBytes = digits_stage_bytes(kShape, kActOf<F>, T::kBytes),
                            kStages = digits_stages(kShape, kActOf<F>, T::kBytes),
                            kPlaneBytes = digits_plane_bytes(kShape);
  static_assert(2 * kHalf + kRest == kXBytes);
  // The layout of the sums v of a group: its columns one after another, then the scales of x, by which v is multiplied
  // when it is added. A thread of the adding warpgroup has four consecutive rows of W (a quad) and every kAtOnce-th
  // column.
  static constexpr uint32_t kPitch = digits_pitch(kGroups), kGroupFloats = kColumns * (kPitch + 1),
                            kFours = digits_rows(kGroups) / 4, kAtOnce = 128 / kFours,
                            kQuads = (kColumns + kAtOnce - 1) / kAtOnce;
  static constexpr int kAtStart = kSplits == 4 ? 80 : 96, kCopierRegisters = 40,
                       kAdderRegisters = kSplits == 4 ? 56 : 80, kRegisters = kSplits == 4 ? 96 : 120;
  static_assert(kCopierRegisters + kAdderRegisters + static_cast<int>(kSplits) * kRegisters <=
                kAtStart * (static_cast<int>(kSplits) + 2));

  const LinearArgs& args;
  uint32_t n_groups, n_rows, first_column, n_own;  // groups of k; rows of x; blocks of this workgroup

  __device__ __forceinline__ DigitsProduct(const LinearArgs& linear_args)
      : args(linear_args),
        n_groups(linear_args.k / 256),
        n_rows(rows_of_x(linear_args)),
        first_column(blockIdx.y * kColumns),
        n_own(blockIdx.x < linear_args.n_blocks ? (linear_args.n_blocks - 1 - blockIdx.x) / gridDim.x + 1 : 0) {}

  __device__ __forceinline__ Job job_at(uint32_t own) const {
    return job_of<kTiles>(args, blockIdx.x + own * gridDim.x, 0, n_rows);
  }

  // Copies W of all blocks of the workgroup. One warp calls it. Weights never change, so the copies start before the
  // inputs are ready.
  __device__ __forceinline__ void copy_w(Stages stages, uint32_t lane) const {
    for (uint32_t own = 0; own < n_own; ++own)
      copy_groups_of_w<F, kTiles, kGroups>(stages, kAllXBytes, job_at(own), args.k, lane);
  }
  // Copies the tile of x, once for each block of the workgroup. One thread calls it.
  __device__ __forceinline__ void copy_x(Stages stages) const {
    const uint8_t* tile = static_cast<const uint8_t*>(args.x) + static_cast<uint64_t>(blockIdx.y) * n_groups * kXBytes;
    for (uint32_t own = 0; own < n_own; ++own) {
      if constexpr (kGroups == 1)
        copy_groups_of_x(stages, kXBytes, tile, n_groups);
      else
        copy_stages_of_x(stages, tile);
    }
  }

  // Computes v of every kSplits-th stage, beginning with stage `split`. Each warp of multiplying warpgroup `split`
  // calls it.
  __device__ __forceinline__ void multiply_all(Stages stages, Stages planes, uint32_t split, uint32_t warp,
                                               uint32_t lane) const {
    stages.advance_by(split);
    planes.advance_by(split);
    for (uint32_t i = split; i < n_own * ((n_groups + kGroups - 1) / kGroups); i += kSplits) {
      stages.wait_full_in_turn();
      if constexpr (kIsFixed)
        multiply_fixed(stages, planes, warp, lane);
      else
        multiply(stages, planes, warp, lane);
      planes.arrive_full();
      stages.advance_by(kSplits);
      planes.advance_by(kSplits);
    }
  }

  // Adds up the products of v and the scales of x over all groups in order, and stores y, for each block of the
  // workgroup. The adding warpgroup calls it.
  __device__ __forceinline__ void add_all(Stages planes, uint32_t thread) const {
    for (uint32_t own = 0; own < n_own; ++own) {
      float4 acc[kQuads] = {};
      for (uint32_t first = 0; first < n_groups; first += kGroups) {
        planes.wait_full();
#pragma unroll
        for (uint32_t g = 0; g < kGroups; ++g) {
          if (first + g >= n_groups) break;
          const float* plane = reinterpret_cast<const float*>(planes.address()) + g * kGroupFloats;
#pragma unroll
          for (int q = 0; q < kQuads; ++q) {
            const uint32_t column = min(column_of(q, thread), kColumns - 1);
            const float4 v = *reinterpret_cast<const float4*>(plane + column * kPitch + thread % kFours * 4);
            const float d = plane[kColumns * kPitch + column];
            acc[q] = make_float4(__fmaf_rn(v.x, d, acc[q].x), __fmaf_rn(v.y, d, acc[q].y), __fmaf_rn(v.z, d, acc[q].z),
                                 __fmaf_rn(v.w, d, acc[q].w));
          }
        }
        planes.release();
        planes.advance();
      }
      put_quads(job_at(own), thread, acc);
    }
  }

 private:
  // Returns the column of an adding thread's quad number `quad`.
  static __device__ __forceinline__ uint32_t column_of(int quad, uint32_t thread) {
    return quad * kAtOnce + thread / kFours;
  }

  // Copies the groups of x to stages of several groups each.
  __device__ __forceinline__ void copy_stages_of_x(Stages& stages, const uint8_t* from) const {
    for (uint32_t first = 0; first < n_groups; first += kGroups, stages.advance()) {
      const uint32_t n = min(kGroups, n_groups - first);
      uint8_t* to = stages.address();
      uint64_t* const full = stages.full + stages.stage;
      stages.wait_empty();
      barrier_expect(full, n * kXBytes);
      for (uint32_t g = 0; g < n; ++g, from += kXBytes) {
        bulk_copy(to + g * kHalf, from, kHalf, full);
        bulk_copy(to + (kGroups + g) * kHalf, from + kHalf, kHalf, full);
        bulk_copy(to + 2 * kGroups * kHalf + g * kRest, from + 2 * kHalf, kRest, full);
      }
    }
  }

  // Stores the thread's sums (a quad of rows for each of its columns) in y. The residuals of several columns are loaded
  // before the first is used.
  __device__ __forceinline__ void put_quads(const Job& job, uint32_t thread, const float4 (&acc)[kQuads]) const {
    constexpr int kLoads = kQuads < 4 ? kQuads : 4;
    const LinearPart& part = *job.part;
    const uint32_t m = job.first_tile * 16 + thread % kFours * 4;
    if (m >= part.rows) return;
    float4 bias = make_float4(-0.0f, -0.0f, -0.0f, -0.0f);  // adding -0 changes no number
    if (part.bias != nullptr) bias = *reinterpret_cast<const float4*>(part.bias + m);
    const auto at = [&](int q) {
      return (first_column + column_of(q, thread)) * static_cast<uint64_t>(part.pitch) + m;
    };
#pragma unroll
    for (int first = 0; first < kQuads; first += kLoads) {
      bool is_column[kLoads];
      float4 before[kLoads] = {};
#pragma unroll
      for (int q = 0; q < kLoads; ++q) {
        const uint32_t column = column_of(first + q, thread);
        is_column[q] = column < kColumns && first_column + column < n_rows;
        if (is_column[q] && args.residual != nullptr)
          before[q] = *reinterpret_cast<const float4*>(args.residual + at(first + q));
      }
#pragma unroll
      for (int q = 0; q < kLoads; ++q) {
        if (!is_column[q]) continue;
        const float4 sum = acc[first + q],
                     v = make_float4(sum.x + bias.x, sum.y + bias.y, sum.z + bias.z, sum.w + bias.w), b = before[q];
        *reinterpret_cast<float4*>(part.y + at(first + q)) = v;
        if (args.residual != nullptr)
          *reinterpret_cast<float4*>(args.residual + at(first + q)) =
              make_float4(b.x + v.x, b.y + v.y, b.z + v.z, b.w + v.w);
      }
    }
  }

  // Computes the sums v of the groups of a stage. The warp has one tile of one of the groups. In the last stage, warps
  // whose group is behind the last one compute values that nobody reads.
  __device__ __forceinline__ void multiply(const Stages& stages, const Stages& planes, uint32_t warp,
                                           uint32_t lane) const {
    using D = Digits<F>;
    const uint32_t own = warp / kTiles, tile = warp % kTiles;  // its group of the stage, its tile of the block
    const uint8_t* stage = stages.address();
    const uint8_t* rest = stage + 2 * kGroups * kHalf;  // the sums and scales of x of all groups
    const Group<F> group{stage + kAllXBytes + (tile * kGroups + own) * kTileBytes, 8, lane};
    const KScales scales[2] = {group.scales(0), group.scales(1)};
    const uint64_t b = wgmma_operand(stage);
    int low[kAllColumns / 2], upper[kAllColumns / 2];
    // Steps are loaded kAhead ahead. kAtOnceSteps products run at once, as many as there are registers for.
    constexpr int kAhead = kAllColumns <= 16 ? 4 : 2, kAtOnceSteps = kAllColumns <= 16 ? 3 : 2;
    Step steps[kAhead];
#pragma unroll
    for (int s = 0; s < kAhead; ++s) steps[s] = group.step(s);
    uint32_t a[kAtOnceSteps][2][4];  // indexes: step, digit
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      D::make(steps[s % kAhead], scales, s, a[s % kAtOnceSteps][0], a[s % kAtOnceSteps][1]);
      if (s + kAhead < 8) steps[s % kAhead] = group.step(s + kAhead);
      wgmma_begin();
      const uint64_t at = b + (s / 4 * kGroups * kHalf + s % 4 * 32) / 16;
      wgmma_bytes<false>(low, a[s % kAtOnceSteps][0], at, s > 0);
      wgmma_bytes<D::kIsUpperSigned>(upper, a[s % kAtOnceSteps][1], at, s > 0);
      wgmma_end_batch();
      wgmma_wait_for_batches<kAtOnceSteps - 1>();
    }
    const D digits(scales, lane);
    planes.wait_empty();
    float* plane = reinterpret_cast<float*>(planes.address());
    float* to = plane + own * kGroupFloats + tile * 16 + lane / 4;
    wgmma_wait_for_batches<0>();
    digits.template close<kColumns>(
        rest + own * kRest, scales, lane,
        [&](int i) {
          int sum = low[i] + D::kUpper * upper[i];
#pragma unroll
          for (uint32_t g = 1; g < kGroups; ++g) {
            const int at = i + g * kColumns / 2, other = low[at] + D::kUpper * upper[at];
            sum = g == own ? other : sum;
          }
          return sum;
        },
        [&](int n, const float(&v)[4]) {
#pragma unroll
          for (int i = 0; i < 4; ++i) to[(n * 8 + lane % 4 * 2 + i % 2) * kPitch + i / 2 * 8] = v[i];
        });
    keep_scales(rest, plane, warp * 32 + lane);
    stages.release_by_warp();
  }
  // Copies the scales of x beside v, because the stage will be released before v is added.
  static __device__ __forceinline__ void keep_scales(const uint8_t* rest, float* plane, uint32_t thread) {
    const uint32_t g = thread / kColumns, column = thread % kColumns;
    if (thread < kAllColumns)
      plane[g * kGroupFloats + kColumns * kPitch + column] =
          *reinterpret_cast<const float*>(rest + (g + 1) * kRest - kColumns * 4 + column * 4);
  }

  // Computes the sums v of the groups of a stage for FIXED16, whose digits are multiplied as in linear_fixed.cuh.
  __device__ __forceinline__ void multiply_fixed(const Stages& stages, const Stages& planes, uint32_t warp,
                                                 uint32_t lane) const {
    const uint32_t own = warp / kTiles, tile = warp % kTiles;
    const uint8_t* stage = stages.address();
    const uint8_t* group = stage + kAllXBytes + (tile * kGroups + own) * kTileBytes;
    const uint64_t b = wgmma_operand(stage);
    int sums[kAllColumns];  // of each group, first with x's high digits, then with the low ones
    FixedPair a[2];
#pragma unroll
    for (int plane = 0; plane < 2; ++plane) {
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        a[pair % 2] = fixed_pair(group, plane, pair, lane);
        wgmma_begin();
#pragma unroll
        for (int s = 0; s < 2; ++s)
          wgmma_bytes<true>(sums, a[pair % 2].a[s], b + (pair / 2 * kGroups * kHalf + pair % 2 * 64 + s * 32) / 16,
                            plane + pair + s > 0);
        wgmma_end_batch();
        wgmma_wait_for_batches<1>();
      }
      wgmma_wait_for_batches<0>();
      if (plane == 1) break;
#pragma unroll
      for (int& sum : sums) sum *= 256;
    }
    const float d[2] = {fixed_scale(group, lane / 4), fixed_scale(group + kFixedHalf, lane / 4)};
    planes.wait_empty();
    float* plane = reinterpret_cast<float*>(planes.address());
    float* to = plane + own * kGroupFloats + tile * 16 + lane / 4;
    const auto sum_of = [&](int i) {  // the sum of the warp's own group
      int sum = sums[i];
#pragma unroll
      for (uint32_t g = 1; g < kGroups; ++g) sum = g == own ? sums[g * kColumns + i] : sum;
      return sum;
    };
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i)
      to[(i / 4 * 8 + lane % 4 * 2 + i % 2) * kPitch + i % 4 / 2 * 8] =
          fixed_value(sum_of(i), sum_of(kColumns / 2 + i), d[i % 4 / 2]);
    keep_scales(stage + 2 * kGroups * kHalf, plane, warp * 32 + lane);
    stages.release_by_warp();
  }
};

// Grid: (workgroups that share the blocks of rows of all parts (matrices), tiles of rows of x). kIndex: index of the
// shape in kDigitsShapes.
template <Format F, int kIndex>
__device__ __forceinline__ void linear_digits(const LinearArgs& args) {
  using P = DigitsProduct<F, kIndex>;
  constexpr uint32_t kN = P::kStages, kSplits = P::kSplits;
  ZRT_DYNAMIC_SHARED(float, shared);
  uint8_t* const first =
      reinterpret_cast<uint8_t*>(shared) + (1024 - reinterpret_cast<uintptr_t>(shared) % 1024) % 1024;
  uint8_t* const v = first + kN * P::kStageBytes;
  auto* barriers = reinterpret_cast<uint64_t*>(v + kSplits * P::kPlaneBytes);
  const Stages stages{first, barriers, barriers + kN, P::kStageBytes, kN};
  barriers += 2 * kN;
  const Stages planes{v, barriers, barriers + kSplits, P::kPlaneBytes, kSplits};
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < kN; ++i) {
      barrier_init(stages.full + i, 2);
      barrier_init(stages.empty + i, 4);
    }
    for (uint32_t i = 0; i < kSplits; ++i) {
      barrier_init(planes.full + i, 128);
      barrier_init(planes.empty + i, 128);
    }
    publish_barriers();
  }
  __syncthreads();
  const P product(args);
  const uint32_t warpgroup = threadIdx.x / 128, thread = threadIdx.x % 128;
  if (warpgroup == kSplits + 1) {
    give_registers<P::kCopierRegisters>();
    if (thread < 32) product.copy_w(stages, thread);
    begin_product(args);
    if (thread == 32) product.copy_x(stages);
    return;
  }
  if (warpgroup == kSplits) {
    give_registers<P::kAdderRegisters>();
    begin_product(args);
    product.add_all(planes, thread);
    return;
  }
  take_registers<P::kRegisters>();
  begin_product(args);
  product.multiply_all(stages, planes, warpgroup, thread / 32, thread % 32);
}

}  // namespace zinc_rt::cuda
#endif
