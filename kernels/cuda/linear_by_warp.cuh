// The product of linear.cuh for experts' items with up to 8 rows of x each. There are so many blocks of 16 rows of W
// that each warp computes whole blocks and adds up their groups itself, in order. So no warp waits for another. Each
// warp copies its next groups of W to shared memory ahead, across the ends of blocks and items. All matrices have whole
// tiles, and there is no residual.
#pragma once

#include "kernels/cuda/fixed_columns.cuh"

namespace zinc_rt::cuda {

// OwnBlocks goes through the blocks of one warp: every kWarps-th of its workgroup's blocks. A workgroup's blocks are
// consecutive, so its warps read the x of one or two items, which the L1 cache then holds.
struct OwnBlocks {
  uint32_t item, block;  // block: its number within the item
  uint32_t n_left;

  __device__ __forceinline__ OwnBlocks(uint32_t n_blocks, uint32_t n_items, uint32_t warp) {
    const uint32_t n = n_blocks * n_items, each = n / gridDim.x, more = n % gridDim.x;
    const uint32_t first = blockIdx.x * each + min(blockIdx.x, more), n_own = each + (blockIdx.x < more ? 1 : 0);
    item = (first + warp) / n_blocks, block = (first + warp) % n_blocks;
    n_left = warp < n_own ? (n_own - 1 - warp) / kWarps + 1 : 0;
  }
  // Moves to the warp's next block. n_blocks: blocks of an item.
  __device__ __forceinline__ void advance(uint32_t n_blocks) {
    --n_left;
    block += kWarps;
    while (block >= n_blocks) block -= n_blocks, ++item;
  }
};

// Stores the results for rows m and m + 8 of W in row `row` of y, after adding the bias.
__device__ __forceinline__ void put_two(const Job& job, uint32_t row, uint32_t m, float2 v) {
  const LinearPart& part = *job.part;
  float* y = part.y + static_cast<uint64_t>(row) * part.pitch + m;
  if (!job.is_valid) v.x = v.y = nan_value();
  if (part.bias != nullptr) v.x = v.x + part.bias[m], v.y = v.y + part.bias[m + 8];
  y[0] = v.x, y[8] = v.y;
}

// kVectors: vectors of 16 bytes in a group of a tile of W. kTile: bytes of such a group. kDepth: groups in a warp's
// ring.
template <Format F>
struct ByWarpShape {
  static constexpr uint32_t kVectors = 256 / Traits<F>::kBlock * Traits<F>::kBytes, kTile = 16 * kVectors,
                            kDepth = by_warp_depth(kTile);
};

// Grid: workgroups that share the blocks of all items.
template <Format F>
__device__ __forceinline__ void linear_by_warp(const LinearArgs& args) {
  using T = Traits<F>;
  using S = ByWarpShape<F>;
  constexpr uint32_t kTile = S::kTile, kDepth = S::kDepth;
  ZRT_DYNAMIC_SHARED(float, shared);
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t k = args.k, n_groups = (k + 255) / 256, last_steps = (k - (n_groups - 1) * 256) / 32;
  const auto steps_of = [&](uint32_t g) { return T::kBlock == 256 || g + 1 < n_groups ? 8 : last_steps; };
  uint8_t* const slots = reinterpret_cast<uint8_t*>(shared) + warp * kDepth * kTile;
  float* const scratch = shared + (kWarps * kDepth * kTile + warp * column_scratch_bytes(1)) / sizeof(float);
  if (args.knows_choices == 0) begin_product(args);
  const uint32_t n_rows = rows_of_x(args);
  const OwnBlocks own(args.n_blocks, items_of(args, n_rows), warp);

  OwnBlocks asked = own;
  uint32_t asked_group = 0, asked_item = kAbsent;
  const uint8_t* asked_from = nullptr;
  Item asked_expert;
  const auto ask = [&](uint8_t* to) {
    if (asked.n_left > 0) {
      if (asked_group == 0) {
        if (asked.item != asked_item) asked_item = asked.item, asked_expert = item_of(args, asked_item, n_rows);
        const Job job = job_of(args, asked.block, asked_expert);
        asked_from = job.w + job.first_tile * 16 * row_bytes_of<F>(k) + 16 * lane;
      }
      const uint32_t vectors = T::kBlock == 256 ? S::kVectors : steps_of(asked_group) * T::kBytes;
#pragma unroll
      for (uint32_t i = 0; i < S::kVectors; i += 32)
        if (i + lane < vectors) copy_16(to + 16 * (i + lane), asked_from + 16 * i);
      asked_from += kTile;
      if (++asked_group == n_groups) asked_group = 0, asked.advance(args.n_blocks);
    }
    end_copy_batch();
  };
  for (uint32_t i = 0; i < kDepth; ++i) ask(slots + i * kTile);
  if (args.knows_choices != 0) begin_product(args);  // weights, which never change, were copied before this wait

  Columns<F, 1, true> columns{
      act_rows(kActOf<F>, const_cast<void*>(args.x), static_cast<uint64_t>(n_rows) * args.x_rows, k), k, lane};
  uint32_t used_item = kAbsent, y_rows[2] = {};
  uint8_t* slot = slots;
  Item item;
  for (OwnBlocks used = own; used.n_left > 0; used.advance(args.n_blocks)) {
    if (used.item != used_item) {
      used_item = used.item;
      item = item_of(args, used_item, n_rows);
      // Columns behind the last one read the last one's row again.
      const auto column = [&](uint32_t i) { return min(i, item.n_columns - 1); };
      columns.set_rows([&](uint32_t i) { return x_row(args, item, column(i)); });
#pragma unroll
      for (int i = 0; i < 2; ++i) y_rows[i] = y_row(item, column(lane % 4 * 2 + i));
      columns.ask(0, steps_of(0));
    }
    float acc[4] = {};
    for (uint32_t g = 0; g < n_groups; ++g) {
      wait_for_copy_batches<kDepth - 1>();
      __syncwarp();
      float v[1][4];
      columns.values({slot, steps_of(g), lane}, g, scratch, v);
      if constexpr (T::kBlock == 256) {
        // Lane 4 c holds the scale of column c. This lane needs columns lane % 4 * 2 and the next.
        const float d[2] = {__shfl_sync(0xFFFFFFFFu, columns.asked_d[0], lane % 4 * 8),
                            __shfl_sync(0xFFFFFFFFu, columns.asked_d[0], lane % 4 * 8 + 4)};
#pragma unroll
        for (int i = 0; i < 4; ++i) acc[i] = __fmaf_rn(v[0][i], d[i % 2], acc[i]);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) acc[i] = acc[i] + v[0][i];
      }
      __syncwarp();
      // The next group of this block, or the first group of the item's next block.
      const uint32_t next = g + 1 < n_groups ? g + 1 : 0;
      columns.ask(next, steps_of(next));
      ask(slot);
      slot = slot + kTile < slots + kDepth * kTile ? slot + kTile : slots;
    }
    const Job job = job_of(args, used.block, item);
#pragma unroll
    for (uint32_t c = 0; c < 2; ++c)
      if (lane % 4 * 2 + c < item.n_columns)
        put_two(job, y_rows[c], job.first_tile * 16 + lane / 4, {acc[c], acc[2 + c]});
  }
}

}  // namespace zinc_rt::cuda
