// Products by digits of sub-scales (linear_digits.cuh) with many rows of x, or with items of experts. A workgroup
// computes 128 rows of W by up to 128 rows of x at a time. Two warpgroups multiply, each 64 of these rows of W by all
// rows of x, and add up their groups themselves, in order. If a tile has fewer rows of x, as most items and the last
// tile do, the number is rounded up to 16, 32 or 64.
// The sums of the upper digits, times kUpper, become the start of the sums of the low digits, whose operands wait in
// registers; separate sums would take more registers. While one warpgroup closes a group, the products of the other
// run. Of the last warpgroup, one warp copies W and one thread copies x, several stages ahead and across tiles.
#pragma once

#include "kernels/cuda/linear_digits.cuh"

#if defined(ZRT_HAS_WGMMA)
namespace zinc_rt::cuda {

// The work of a workgroup. Each role (copying W, copying x, multiplying) calls one of the public functions.
template <Format F>
struct DigitsTile {
  using T = Traits<F>;
  using D = Digits<F>;
  static constexpr uint32_t kColumns = kDigitsTile, kTiles = kDigitsTile / 16, kTileBytes = 16 * T::kBytes;
  static constexpr uint32_t kXBytes = digits_x_bytes(kColumns), kStageBytes = digits_tile_stage_bytes(T::kBytes),
                            kStages = digits_tile_stages(T::kBytes);
  static constexpr int kCopierRegisters = 40, kRegisters = 232;

  const LinearArgs& args;
  uint32_t n_groups, n_rows, n_x_tiles, n_tiles;  // n_x_tiles: items of experts, or tiles of rows of x
  bool is_expert;

  __device__ __forceinline__ DigitsTile(const LinearArgs& linear_args, uint32_t rows)
      : args(linear_args),
        n_groups(linear_args.k / 256),
        n_rows(rows),
        n_x_tiles(linear_args.choices != 0 ? items_of(linear_args, rows) : (rows + kColumns - 1) / kColumns),
        n_tiles(linear_args.n_blocks * n_x_tiles),
        is_expert(linear_args.choices != 0) {}

  // Tiles are ordered so that workgroups that run at the same time share rows of W; with experts, so that they share
  // rows of x.
  __device__ __forceinline__ uint32_t block_of(uint32_t tile) const {
    return is_expert ? tile % args.n_blocks : tile / n_x_tiles;
  }
  __device__ __forceinline__ uint32_t x_tile_of(uint32_t tile) const {
    return is_expert ? tile / args.n_blocks : tile % n_x_tiles;
  }
  __device__ __forceinline__ Job job_at(uint32_t tile) const {
    return job_of<kTiles>(args, block_of(tile), x_tile_of(tile), n_rows);
  }
  // Returns the tile's number of rows of x, rounded up to one of the four for which multiply() is instantiated.
  __device__ __forceinline__ uint32_t columns_of(uint32_t tile) const {
    const uint32_t x_tile = x_tile_of(tile),
                   n = is_expert ? static_cast<uint32_t>(args.items[1 + 3 * x_tile + 2]) : n_rows - x_tile * kColumns;
    return n > 64 ? kColumns : n > 32 ? 64 : n > 16 ? 32 : 16;
  }

  // Copies W of all tiles of this workgroup to stages. Called by one warp.
  __device__ __forceinline__ void copy_w(Stages stages, uint32_t lane) const {
    for (uint32_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x)
      copy_groups_of_w<F, kTiles>(stages, kXBytes, job_at(tile), args.k, lane);
  }
  // Copies x of all tiles of this workgroup to stages. Called by one thread.
  __device__ __forceinline__ void copy_x(Stages stages) const {
    for (uint32_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x) {
      const uint32_t n = columns_of(tile);
      const uint8_t* from =
          static_cast<const uint8_t*>(args.x) + static_cast<uint64_t>(x_tile_of(tile)) * n_groups * kXBytes;
      if (n == kColumns)
        copy_groups_of_x(stages, kXBytes, from, n_groups);
      else
        copy_some_of_x(stages, from, n);
    }
  }

  // Called by the warp that computes tile `own` (16 rows of W) of each block.
  __device__ __forceinline__ void multiply_all(Stages stages, uint32_t own, uint32_t lane) const {
    for (uint32_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x) {
      switch (columns_of(tile)) {
        case 16: multiply<16>(stages, tile, own, lane); break;
        case 32: multiply<32>(stages, tile, own, lane); break;
        case 64: multiply<64>(stages, tile, own, lane); break;
        default: multiply<kColumns>(stages, tile, own, lane);
      }
    }
  }

 private:
  // Copies only the first n rows of x of each group.
  __device__ __forceinline__ void copy_some_of_x(Stages& stages, const uint8_t* from, uint32_t n) const {
    for (uint32_t g = 0; g < n_groups; ++g, from += kXBytes, stages.advance()) {
      uint8_t* to = stages.address();
      uint64_t* const full = stages.full + stages.stage;
      const auto copy = [&](uint32_t at, uint32_t bytes) { bulk_copy(to + at, from + at, n * bytes, full); };
      stages.wait_empty();
      barrier_expect(full, digits_x_bytes(n));
      copy(0, 128);
      copy(kColumns * 128, 128);
      copy(kColumns * 256, 32);
      copy(kColumns * 288, 4);
    }
  }

  // Computes a tile with up to kN rows of x.
  template <uint32_t kN>
  __device__ __forceinline__ void multiply(Stages& stages, uint32_t tile, uint32_t own, uint32_t lane) const {
    float acc[kN / 2] = {};
    for (uint32_t g = 0; g < n_groups; ++g, stages.advance()) {
      stages.wait_full();
      add<kN>(stages.address(), own, lane, acc);
      stages.release_by_warp();
    }
    const Job job = job_at(tile);
    put_all<kN>(args, job, acc, is_expert ? 0 : x_tile_of(tile) * kColumns, (job.first_tile + own) * 16 + lane / 4,
                lane);
  }

  // acc += v * d_x of the group of a stage, in the order of docs/arithmetic.md.
  template <uint32_t kN>
  __device__ __forceinline__ void add(const uint8_t* stage, uint32_t own, uint32_t lane, float (&acc)[kN / 2]) const {
    const Group<F> group{stage + kXBytes + own * kTileBytes, 8, lane};
    const KScales scales[2] = {group.scales(0), group.scales(1)};
    const uint64_t b = wgmma_operand(stage);
    constexpr int kAtOnce = 3;
    const auto at = [&](int s) { return b + (s / 4 * kColumns * 128 + s % 4 * 32) / 16; };
    int sums[kN / 2];
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
    digits.template close<kN>(
        stage + kColumns * 256, scales, lane, [&](int i) { return sums[i]; },
        [&](int n, const float(&v)[4]) {
          const float2 d = *reinterpret_cast<const float2*>(stage + kColumns * 288 + (n * 8 + lane % 4 * 2) * 4);
#pragma unroll
          for (int i = 0; i < 4; ++i) acc[n * 4 + i] = __fmaf_rn(v[i], i % 2 == 0 ? d.x : d.y, acc[n * 4 + i]);
        });
  }
};

// Grid: workgroups that share the tiles of all parts (matrices) and of all items.
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
