// Products of many rows of x with FIXED16 weights by wgmma (sm_90a), with the arguments and the bits of linear.cuh.
// Both digits of x are columns of operand B, so one instruction sums up one digit of W times both digits of x. The sums
// of W's high digits, times 256, become the start of the sums of the low digits. So each row of x ends up with two
// sums: with its high digits and with its low digits.
// Two warpgroups multiply 64 rows of W each. While one of them adds a finished group to y's sums, the products of the
// other run. Of the third warpgroup, one warp copies W and one thread copies x, several stages ahead and across tiles.
#pragma once

#include "kernels/cuda/fixed_columns.cuh"
#include "kernels/cuda/stages.cuh"

#if defined(ZRT_HAS_WGMMA)
namespace zinc_rt::cuda {

// The rings of stages in shared memory: halves of groups of x, planes (one digit) of groups of W, and the scales of
// both.
struct FixedStages {
  Stages x, w, scales;
};

// The work of a workgroup. Each role (copying W, copying x, multiplying) calls one of the public functions.
template <uint32_t kColumns>
struct FixedTile {
  static constexpr uint32_t kTiles = kFixedRows / 16, kHalves = 2 * kTiles, kXHalf = fixed_half_bytes(kColumns),
                            kXBytes = fixed_x_bytes(kColumns), kWScales = kFixedRows * 2, kXScales = kColumns * 4;
  static constexpr uint32_t kXStages = kFixedXStages, kWStages = fixed_w_stages(kColumns),
                            kScaleStages = kFixedScaleStages, kScaleBytes = fixed_scale_bytes(kColumns),
                            kRingBytes = fixed_ring_bytes(kColumns, kWStages);
  static constexpr int kCopierRegisters = 40, kRegisters = 232;

  const LinearArgs& args;
  uint32_t n_groups, n_x_tiles, n_tiles;

  __device__ __forceinline__ explicit FixedTile(const LinearArgs& linear_args)
      : args(linear_args),
        n_groups(linear_args.k / 256),
        n_x_tiles((rows_of_x(linear_args) + kColumns - 1) / kColumns),
        n_tiles(linear_args.n_blocks * n_x_tiles) {}

  // Returns the job of a tile. Tiles are ordered so that workgroups that run at the same time share rows of W.
  __device__ __forceinline__ Job job_at(uint32_t tile) const {
    return job_of<kTiles>(args, tile / n_x_tiles, all_rows(rows_of_x(args)));
  }

  // Called by one warp. Each of its first lanes copies 8 rows of W (half a tile). Weights never change, so the copies
  // start before the inputs are ready.
  __device__ __forceinline__ void copy_w(FixedStages stages, uint32_t lane) const {
    Stages &w = stages.w, &scales = stages.scales;
    const uint64_t tile_bytes = 16 * row_bytes_of<kFixed16>(args.k);
    for (uint32_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x) {
      const Job job = job_at(tile);
      const uint8_t* from = job.w + min(job.first_tile + lane % kHalves / 2, job.part->rows / 16 - 1) * tile_bytes +
                            lane % 2 * kFixedHalf;
      const auto copy = [&](Stages& to, uint32_t at, uint32_t offset, uint32_t bytes) {
        to.wait_empty();
        if (lane == 0) barrier_expect(to.full + to.stage, kHalves * bytes);
        __syncwarp();
        if (lane < kHalves) bulk_copy(to.address() + at + lane * bytes, from + offset, bytes, to.full + to.stage);
        to.advance();
      };
      for (uint32_t g = 0; g < n_groups; ++g, from += kFixedGroup) {
        copy(w, 0, 0, kFixedPlane);
        copy(scales, kXScales, 2 * kFixedPlane, 16);
        copy(w, 0, kFixedPlane, kFixedPlane);
      }
    }
  }
  // Called by one thread.
  __device__ __forceinline__ void copy_x(FixedStages stages) const {
    for (uint32_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x) {
      const uint8_t* from =
          static_cast<const uint8_t*>(args.x) + static_cast<uint64_t>(tile % n_x_tiles) * n_groups * kXBytes;
      const auto copy = [&](Stages& to, uint32_t bytes) {
        to.wait_empty();
        barrier_expect(to.full + to.stage, bytes);
        bulk_copy(to.address(), from, bytes, to.full + to.stage);
        to.advance();
        from += bytes;
      };
      for (uint32_t g = 0; g < n_groups; ++g) {
        copy(stages.x, kXHalf);
        copy(stages.x, kXHalf);
        copy(stages.scales, kXScales);
      }
    }
  }

  // Called by each warp that multiplies. own: the number of the warp's tile of 16 rows in the block.
  __device__ __forceinline__ void multiply_all(FixedStages stages, uint32_t own, uint32_t lane) const {
    for (uint32_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x) {
      float acc[kColumns / 2] = {};
      for (uint32_t g = 0; g < n_groups; ++g) add_group(stages, own, lane, acc);
      const Job job = job_at(tile);
      put_all<kColumns>(args, job, acc, tile % n_x_tiles * kColumns, (job.first_tile + own) * 16 + lane / 4, lane);
    }
  }

 private:
  // acc += v * d_x of the next group, in the order of docs/arithmetic.md.
  __device__ __forceinline__ void add_group(FixedStages& stages, uint32_t own, uint32_t lane,
                                            float (&acc)[kColumns / 2]) const {
    Stages &x = stages.x, &w = stages.w, &scales = stages.scales;
    Stages second = x;  // the second half of the group of x
    second.advance();
    const uint64_t b[2] = {wgmma_operand(x.address()), wgmma_operand(second.address())};
    int sums[kColumns];  // first with x's high digits, then with the low ones
    FixedPair a[2];      // one is used while the other is loaded
#pragma unroll
    for (int plane = 0; plane < 2; ++plane) {
      w.wait_full();
      const uint8_t* first = w.address() + own * 2 * kFixedPlane;
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        a[pair % 2] = FixedPair(first, first + kFixedPlane, pair, lane);
        if (plane == 0 && pair == 0) x.wait_full();
        if (plane == 0 && pair == 2) second.wait_full();
        wgmma_begin();
#pragma unroll
        for (int s = 0; s < 2; ++s)
          wgmma_bytes<true>(sums, a[pair % 2].a[s], b[pair / 2] + pair % 2 * 4 + s * 2, plane + pair + s > 0);
        wgmma_end_batch();
        wgmma_wait_for_batches<1>();
        if (plane == 1 && pair == 2) x.release_by_warp();
      }
      wgmma_wait_for_batches<0>();
      w.release_by_warp();
      w.advance();
      if (plane == 1) break;
#pragma unroll
      for (int& sum : sums) sum *= 256;
    }
    second.release_by_warp();
    second.advance();
    x = second;
    scales.wait_full();
    close(scales.address(), own, lane, sums, acc);
    scales.release_by_warp();
    scales.advance();
  }

  // Adds a finished group to acc: the sums with x's high and low digits become v, which is multiplied by the scale of
  // x. at: the scales.
  __device__ __forceinline__ static void close(const uint8_t* at, uint32_t own, uint32_t lane,
                                               const int (&sums)[kColumns], float (&acc)[kColumns / 2]) {
    float d[2];
#pragma unroll
    for (int r = 0; r < 2; ++r)
      d[r] = __uint_as_float(
          static_cast<uint32_t>(*reinterpret_cast<const uint16_t*>(at + kXScales + (own * 16 + lane / 4 + 8 * r) * 2))
          << 16);
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) {
      const float2 dx = *reinterpret_cast<const float2*>(at + (n * 8 + lane % 4 * 2) * 4);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        acc[n * 4 + i] = __fmaf_rn(fixed_value(sums[n * 4 + i], sums[kColumns / 2 + n * 4 + i], d[i / 2]),
                                   i % 2 == 0 ? dx.x : dx.y, acc[n * 4 + i]);
    }
  }
};

// Grid: workgroups that share the tiles of all parts (matrices). All rows of W are in whole tiles of 16.
template <uint32_t kColumns>
__device__ __forceinline__ void linear_fixed(const LinearArgs& args) {
  using P = FixedTile<kColumns>;
  constexpr uint32_t kMultipliers = P::kTiles;  // number of warps that multiply
  ZRT_DYNAMIC_SHARED(float, shared);
  uint8_t* at = reinterpret_cast<uint8_t*>(shared) + (1024 - reinterpret_cast<uintptr_t>(shared) % 1024) % 1024;
  auto* barriers = reinterpret_cast<uint64_t*>(at + P::kRingBytes);
  // Makes a ring of n stages of `bytes` bytes, and initializes its barriers. copiers: threads that arrive per filling.
  const auto ring = [&](uint32_t bytes, uint32_t n, uint32_t copiers) {
    const Stages stages{at, barriers, barriers + n, bytes, n};
    at += n * bytes, barriers += 2 * n;
    for (uint32_t i = 0; i < n && threadIdx.x == 0; ++i) {
      barrier_init(stages.full + i, copiers);
      barrier_init(stages.empty + i, kMultipliers);
    }
    return stages;
  };
  const Stages x = ring(P::kXHalf, P::kXStages, 1), w = ring(kFixedPlaneBytes, P::kWStages, 1),
               scales = ring(P::kScaleBytes, P::kScaleStages, 2);
  if (threadIdx.x == 0) publish_barriers();
  __syncthreads();
  const P product(args);
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp >= kMultipliers) {
    give_registers<P::kCopierRegisters>();
    if (warp == kMultipliers) product.copy_w({x, w, scales}, lane);
    begin_product(args);
    if (warp == kMultipliers + 1 && lane == 0) product.copy_x({x, w, scales});
    return;
  }
  take_registers<P::kRegisters>();
  begin_product(args);
  product.multiply_all({x, w, scales}, warp, lane);
}

}  // namespace zinc_rt::cuda
#endif
