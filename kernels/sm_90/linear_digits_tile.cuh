// Products by digits of sub-scales (linear_digits.cuh) of many rows of x: a workgroup has 128 rows of W and 128 of x at
// a time, a warpgroup 64 of those of W and all of x, whose groups it adds up itself, in order. The sums of the upper
// digits, times what these stand for, become the accumulators of the lower ones, which wait in registers: another set
// of sums would take more of them. While a warpgroup closes a group, the other one's products run. A warp of the last
// warpgroup copies W, a thread x, stages ahead, across tiles.
#pragma once

#include "kernels/sm_90/linear_digits.cuh"

#if defined(ZRT_HAS_WGMMA)
namespace zinc_rt::cuda {

template <Format F>
struct DigitsTile {
  using T = Traits<F>;
  using D = Digits<F>;
  static constexpr uint32_t kColumns = kDigitsTile, kTiles = kDigitsTile / 16, kTileBytes = 16 * T::kBytes;
  static constexpr uint32_t kXBytes = digits_x_bytes(kColumns), kStageBytes = digits_tile_stage_bytes(T::kBytes),
                            kStages = digits_tile_stages(T::kBytes);
  static constexpr int kCopierRegisters = 40, kRegisters = 232;

  const LinearArgs& args;
  uint32_t n_groups, n_rows, n_column_tiles, n_tiles;  // n_tiles: of all workgroups

  __device__ __forceinline__ DigitsTile(const LinearArgs& linear_args, uint32_t rows)
      : args(linear_args),
        n_groups(linear_args.k / 256),
        n_rows(rows),
        n_column_tiles((rows + kColumns - 1) / kColumns),
        n_tiles(linear_args.n_blocks * n_column_tiles) {}

  // Workgroups that run at the same time share rows of W.
  __device__ __forceinline__ Job job_at(uint32_t tile) const {
    return job_of<kTiles>(args, tile / n_column_tiles, 0, n_rows);
  }

  __device__ __forceinline__ void copy_w(Stages stages, uint32_t lane) const {
    for (uint32_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x)
      copy_groups_of_w<F, kTiles>(stages, kXBytes, job_at(tile), args.k, lane);
  }
  __device__ __forceinline__ void copy_x(Stages stages) const {
    for (uint32_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x)
      copy_groups_of_x(
          stages, kXBytes,
          static_cast<const uint8_t*>(args.x) + static_cast<uint64_t>(tile % n_column_tiles) * n_groups * kXBytes,
          n_groups);
  }

  // What a warp does that has tile `own` of 16 rows of each block.
  __device__ __forceinline__ void multiply_all(Stages stages, uint32_t own, uint32_t lane) const {
    for (uint32_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x) {
      float acc[kColumns / 2] = {};
      for (uint32_t g = 0; g < n_groups; ++g, stages.advance()) {
        stages.wait_full();
        add(stages.address(), own, lane, acc);
        stages.release_by_warp();
      }
      const Job job = job_at(tile);
      put_all<kColumns>(args, job, acc, tile % n_column_tiles * kColumns, (job.first_tile + own) * 16 + lane / 4, lane);
    }
  }

 private:
  // acc += the group of a stage, in the order of the contract.
  __device__ __forceinline__ void add(const uint8_t* stage, uint32_t own, uint32_t lane,
                                      float (&acc)[kColumns / 2]) const {
    const Group<F> group{stage + kXBytes + own * kTileBytes, 8, lane};
    const KScales scales[2] = {group.scales(0), group.scales(1)};
    const uint64_t b = wgmma_operand(stage);
    constexpr int kAtOnce = 3;
    const auto at = [&](int s) { return b + (s / 4 * kColumns * 128 + s % 4 * 32) / 16; };
    int sums[kColumns / 2];
    uint32_t upper[kAtOnce][4], low[8][4];
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      D::make(group.step(s), scales, s, low[s], upper[s % kAtOnce]);
      wgmma_begin();
      wgmma_bytes<D::kIsUpperSigned>(sums, upper[s % kAtOnce], at(s), s > 0);
      wgmma_end_batch();
      wgmma_wait_for_batches<kAtOnce - 1>();
    }
    wgmma_wait_for_batches<0>();
#pragma unroll
    for (int& sum : sums) sum *= D::kUpper;
    wgmma_begin();
#pragma unroll
    for (int s = 0; s < 8; ++s) wgmma_bytes<false>(sums, low[s], at(s), true);
    wgmma_end_batch();
    wgmma_wait_for_batches<0>();
    const D digits(scales, lane);
    digits.template close<kColumns>(
        stage + kColumns * 256, scales, lane, [&](int i) { return sums[i]; },
        [&](int n, const float(&v)[4]) {
          const float2 d = *reinterpret_cast<const float2*>(stage + kColumns * 288 + (n * 8 + lane % 4 * 2) * 4);
#pragma unroll
          for (int i = 0; i < 4; ++i) acc[n * 4 + i] = __fmaf_rn(v[i], i % 2 == 0 ? d.x : d.y, acc[n * 4 + i]);
        });
  }
};

// Grid: workgroups that share the tiles of all parts.
template <Format F>
__device__ __forceinline__ void linear_digits_tile(const LinearArgs& args) {
  using P = DigitsTile<F>;
  ZRT_DYNAMIC_SHARED(float, shared);
  uint8_t* const first =
      reinterpret_cast<uint8_t*>(shared) + (1024 - reinterpret_cast<uintptr_t>(shared) % 1024) % 1024;
  auto* barriers = reinterpret_cast<uint64_t*>(first + P::kStages * P::kStageBytes);
  const Stages stages{first, barriers, barriers + P::kStages, P::kStageBytes, P::kStages};
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < P::kStages; ++i) {
      barrier_init(stages.full + i, 2);
      barrier_init(stages.empty + i, P::kTiles);
    }
    publish_barriers();
  }
  begin_product(args);
  __syncthreads();
  const P product(args, rows_of_x(args));
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp >= P::kTiles) {
    give_registers<P::kCopierRegisters>();
    if (warp == P::kTiles) product.copy_w(stages, lane);
    if (warp == P::kTiles + 1 && lane == 0) product.copy_x(stages);
    return;
  }
  take_registers<P::kRegisters>();
  product.multiply_all(stages, warp, lane);
}

}  // namespace zinc_rt::cuda
#endif
