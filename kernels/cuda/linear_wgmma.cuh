// Products of arithmetic `fast` with many rows of x: y[t][m] = dot(w[m], x[t]) + bias[m]. W and x are bf16 (layout of
// x: wgmma_args.h, written by bf16_rows.cu), and the tensor cores sum up in float, in their own order.
// A workgroup computes a block of rows of W by rows of x. Its last warpgroup copies groups of W and blocks of x to
// shared memory, each in a ring of stages. The others multiply. BF16 weights are read from shared memory by the tensor
// cores; weights of other formats are converted to bf16 in registers, a step of 32 values at a time. A warpgroup must
// wait with that until the tensor cores have read the operands of its previous step, so it is the other warpgroups that
// keep them busy meanwhile.
#pragma once

#include "kernels/cuda/linear_job.cuh"
#include "kernels/cuda/stages.cuh"

#if defined(ZRT_HAS_WGMMA)
namespace zinc_rt::cuda {

constexpr uint32_t kNegativeZeros = 0x80008000u;

// What a stage of W holds: rows of float weights in the layout of x (wgmma_args.h), or tiles of quantized rows.
template <Format F>
struct WgmmaWeights {
  static constexpr bool kIsFloat = false;
  static constexpr uint32_t kValues = 256, kSteps = 8, kGroupBytes = 256 / Traits<F>::kBlock * Traits<F>::kBytes;
};
struct WgmmaFloats {
  static constexpr bool kIsFloat = true;
  static constexpr uint32_t kValues = kWgmmaValues, kSteps = 2, kGroupBytes = kWgmmaValues * 2;
};
template <>
struct WgmmaWeights<kF16> : WgmmaFloats {};
template <>
struct WgmmaWeights<kBF16> : WgmmaFloats {};

// QuantizedTile is a tile of 16 quantized rows as one lane reads it, in formats other than F16 and BF16: its codes, and
// the scales for its two rows (lane / 4 and lane / 4 + 8). For each step and row there is a word of two bf16: scale and
// minimum, or, if scales are for 16 values, the scales of both halves (kWords 2: a word of scale and minimum for each
// half). Each of the four lanes of a row holds the words of two steps.
template <Format F>
struct QuantizedTile {
  using T = Traits<F>;
  static constexpr bool kIsSigned = T::kP8 != 0 || T::kTable != 0, kIsHalved = T::kSub == 16;
  static constexpr int kWords = kIsHalved && T::kMin != 0 ? 2 : 1;
  Group<F> group;
  uint32_t own[2][2][kWords];  // indexes: row, step

  QuantizedTile() = default;
  // Computes the words of scales that this lane holds for a group of a tile.
  __device__ __forceinline__ QuantizedTile(const uint8_t* tile, uint32_t n_steps, uint32_t lane)
      : group{tile, n_steps, lane} {
    const uint32_t part = lane % 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if constexpr (T::kBlock == 32) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const uint32_t bytes = group.scale(r, 2 * part + i);
          own[r][i][0] = bf16_pair(block_scale<F>(bytes), T::kMin != 0 ? block_min(bytes) : -0.0f);
        }
      } else {
        const KScales all = group.scales(r);
        const auto own_bytes = [&](const uint32_t(&words)[4]) {
          if constexpr (kIsHalved) {
            const uint32_t first = part % 2 == 0 ? words[0] : words[1], second = part % 2 == 0 ? words[2] : words[3];
            return part < 2 ? first : second;
          }
          return (part < 2 ? words[0] : words[1]) >> (16 * (part % 2));
        };
        KScales bytes{};
        bytes.sc[0] = own_bytes(all.sc);
        const uint32_t minimums = T::kMin != 0 ? own_bytes(all.m) : 0;
        const auto scale = [&](int j) { return all.d * static_cast<float>(sub_scale<F>(bytes, j)); };
        const auto less = [&](int j) {
          return T::kMin != 0 ? -all.dmin * static_cast<float>(minimums >> (8 * j) & 0xFF) : -0.0f;
        };
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          if constexpr (kWords == 2) {
            own[r][i][0] = bf16_pair(scale(2 * i), less(2 * i));
            own[r][i][1] = bf16_pair(scale(2 * i + 1), less(2 * i + 1));
          } else if constexpr (kIsHalved) {
            own[r][i][0] = bf16_pair(scale(2 * i), scale(2 * i + 1));
          } else {
            own[r][i][0] = bf16_pair(scale(i), less(i));
          }
        }
      }
    }
  }

  // Converts four codes to bf16 and subtracts their offset. A bf16 with upper byte 0x43 and the code as its lower byte
  // is 128 + code. A signed byte is its low seven bits minus 128 if its top bit is set, so for signed codes 128 or 256
  // is subtracted.
  static __device__ __forceinline__ void widen(uint32_t codes, uint32_t& low, uint32_t& high) {
    constexpr uint32_t kOne = 0x3F803F80u;
    if constexpr (kIsSigned) {
      const uint32_t bits = codes & 0x7F7F7F7Fu, signs = codes & 0x80808080u;
      low = fma_bf16_pair(__byte_perm(bits, 0x43434343u, 0x4140), kOne, __byte_perm(signs, 0xC3C3C3C3u, 0x4140));
      high = fma_bf16_pair(__byte_perm(bits, 0x43434343u, 0x4342), kOne, __byte_perm(signs, 0xC3C3C3C3u, 0x4342));
    } else {
      constexpr uint32_t kLess = (0xC300u + T::kOffset) * 0x00010001u;
      low = fma_bf16_pair(__byte_perm(codes, 0x43434343u, 0x4140), kOne, kLess);
      high = fma_bf16_pair(__byte_perm(codes, 0x43434343u, 0x4342), kOne, kLess);
    }
  }
  // Makes the operands A of the two products of a step.
  __device__ __forceinline__ void operands(int s, uint32_t (&a)[2][4]) const {
    uint32_t codes[4];
    operand<F>(group.step(s), codes);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      uint32_t words[kWords];
#pragma unroll
      for (int i = 0; i < kWords; ++i)
        words[i] = __shfl_sync(0xFFFFFFFFu, own[r][s % 2][i], static_cast<int>((group.lane & 28) + s / 2));
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint32_t word = words[half % kWords];
        const bool is_upper = kIsHalved && kWords == 1 && half == 1;
        const uint32_t scale = __byte_perm(word, 0, is_upper ? 0x3232 : 0x1010),
                       added = T::kMin != 0 ? __byte_perm(word, 0, 0x3232) : kNegativeZeros;
        uint32_t low, high;
        widen(codes[2 * half + r], low, high);
        a[half][r] = fma_bf16_pair(low, scale, added);
        a[half][2 + r] = fma_bf16_pair(high, scale, added);
      }
    }
  }
};

// F16Tile is a tile of 16 rows of F16 weights, which are converted to bf16.
struct F16Tile {
  const uint8_t* row = nullptr;  // the row of the matrices that this lane passes to load_matrices()
  uint32_t lane = 0;

  F16Tile() = default;
  __device__ __forceinline__ F16Tile(const uint8_t* tile, uint32_t, uint32_t lane_of_warp)
      : row(tile + lane_of_warp % 16 * 128), lane(lane_of_warp) {}

  // Makes the operands A of the two products of a step.
  __device__ __forceinline__ void operands(int s, uint32_t (&a)[2][4]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      load_matrices(a[half], row + ((4 * s + 2 * half + lane / 16) ^ lane % 8) * 16);
#pragma unroll
      for (uint32_t& pair : a[half]) {
        const float2 values = widen_f16_pair(pair);
        pair = bf16_pair(values.x, values.y);
      }
    }
  }
};

// The work of a workgroup: a job's block of kRows rows of W by kColumns rows of x.
template <Format F, uint32_t kWarpgroups, uint32_t kColumns>
struct WgmmaProduct {
  using W = WgmmaWeights<F>;
  using Tile = std::conditional_t<W::kIsFloat, F16Tile, QuantizedTile<W::kIsFloat ? kQ4_K : F>>;
  static constexpr WgmmaShape kShape{kWarpgroups, kColumns};
  // The step during which the next group's scales are computed. Float weights have no scales, and their next group may
  // not have arrived that early.
  static constexpr int kScalesAtStep = W::kIsFloat ? W::kSteps - 1 : 5;
  static constexpr uint32_t kWStages = wgmma_w_stages(W::kGroupBytes);
  static constexpr uint32_t kRows = wgmma_rows(kShape), kTileBytes = 16 * W::kGroupBytes,
                            kXStages = wgmma_x_stages(kShape, W::kGroupBytes), kXBytes = wgmma_x_bytes(kShape);
  static constexpr uint32_t kMultipliers = 4 * kWarpgroups;  // number of warps that multiply
  // The registers of a thread at the start of the kernel (kAtStart, from __launch_bounds__), and after they were moved
  // from the copying warpgroup to the others.
  static constexpr int kAtStart = wgmma_workgroups(kShape) == 2 ? 80
                                  : kWarpgroups == 4            ? 96
                                                                : 168,
                       kCopierRegisters = kAtStart == 168 ? 40 : 32,
                       kRegisters = kAtStart == 80   ? 104
                                    : kAtStart == 96 ? 112
                                                     : 232;
  static_assert(kCopierRegisters + static_cast<int>(kWarpgroups) * kRegisters <=
                kAtStart * (static_cast<int>(kWarpgroups) + 1));
  static_assert(kXStages >= 3 && 2 * (kXStages + kWStages) * 8 <= 256);

  const TensorMap& map;
  const Job& job;
  uint32_t k, n_groups;
  const uint8_t* x;  // of the workgroup's columns

  // Returns the number of steps of 32 values in group g.
  __device__ __forceinline__ uint32_t steps_of(uint32_t g) const { return min(W::kSteps, (k - g * W::kValues) / 32); }

  // Starts the copy of group g of W to a stage. For float weights, rows behind the matrix's last and values behind k
  // become zeros.
  __device__ __forceinline__ void copy_w(const Stages& w, uint32_t g, uint32_t thread) const {
    if constexpr (W::kIsFloat) {
      if (thread == 0) {
        barrier_expect(w.full + w.stage, kRows * W::kGroupBytes);
        tensor_copy(w.address(), map, g * W::kValues, job.first_tile * 16, job.is_expert ? job.expert : 0,
                    w.full + w.stage);
      }
    } else {
      const uint64_t row_bytes = row_bytes_of<F>(k);
      const uint32_t last_row = job.part->rows - 1;
      const uint32_t bytes = 16 * static_cast<uint32_t>(row_bytes_of<F>(steps_of(g) * 32));
      if (thread == 0) barrier_expect(w.full + w.stage, kRows / 16 * bytes);
      __syncwarp();
      if (thread < kRows / 16)
        bulk_copy(w.address() + thread * kTileBytes,
                  job.w + min(job.first_tile + thread, last_row / 16) * 16 * row_bytes + 16 * row_bytes_of<F>(g * 256),
                  bytes, w.full + w.stage);
    }
  }

  // The work of the last warpgroup. One of its warps does all of it.
  __device__ __forceinline__ void copy(Stages w, Stages blocks, uint32_t thread) const {
    if (thread >= 32) return;
    for (uint32_t g = 0; g < n_groups; ++g) {
      w.wait_empty();
      copy_w(w, g, thread);
      w.advance();
      for (uint32_t b = 0; b < (steps_of(g) + 1) / 2; ++b) {
        blocks.wait_empty();
        if (thread == 0) {
          barrier_expect(blocks.full + blocks.stage, kXBytes);
          bulk_copy(blocks.address(), x + static_cast<uint64_t>(g * (W::kValues / kWgmmaValues) + b) * kWgmmaBlockBytes,
                    kXBytes, blocks.full + blocks.stage);
        }
        __syncwarp();
        blocks.advance();
      }
    }
  }

  // Computes acc, the products of a warpgroup with W in shared memory. The warpgroup's rows begin at first_row of the
  // block.
  __device__ __forceinline__ void multiply_shared(Stages w, Stages blocks, uint32_t first_row,
                                                  float (&acc)[kColumns / 2]) const {
    const auto run = [&](uint32_t g, uint32_t n_parts) {
      w.wait_full();
      blocks.wait_full();
      wgmma_begin();
      const uint64_t b = wgmma_operand(blocks.address());
      const uint64_t a = wgmma_operand(w.address() + first_row * W::kGroupBytes);
#pragma unroll
      for (uint32_t part = 0; part < n_parts; ++part) wgmma_shared(acc, a + part * 2, b + part * 2, g > 0 || part > 0);
      wgmma_end_batch();
    };
    const uint32_t n_whole = k / W::kValues;
    for (uint32_t g = 0; g < n_whole; ++g) {
      run(g, 4);
      wgmma_wait_for_batches<1>();  // waits for the group before
      release(blocks.empty + blocks.before(), g > 0);
      release(w.empty + w.before(), g > 0);
      w.advance();
      blocks.advance();
    }
    wgmma_wait_for_batches<0>();
    if (n_whole == n_groups) return;
    if (n_whole > 0) release(blocks.empty + blocks.before(), true), release(w.empty + w.before(), true);
    run(n_whole, 2);
    wgmma_wait_for_batches<0>();
  }

  // Computes acc, the products of a warpgroup with W in registers. tile: the warp's tile of W in the block.
  // The compiler (ptxas) runs products one after another if one may be in flight where two branches of control flow
  // join, except at the end of a loop. So whole groups are a loop without branches, and a shorter last group follows
  // after all products have ended.
  __device__ __forceinline__ void multiply(Stages w, Stages blocks, uint32_t tile, uint32_t lane,
                                           float (&acc)[kColumns / 2]) const {
    const uint32_t n_whole = k / W::kValues;
    const auto tile_of = [&](const Stages& stages, uint32_t n_steps) {
      stages.wait_full();
      return Tile(stages.address() + tile * kTileBytes, n_steps, lane);
    };
    uint32_t a[2][2][4];  // one is used while the other is computed
    Tile own, next;
    if (n_whole > 0) next = tile_of(w, W::kSteps);
    for (uint32_t g = 0; g < n_whole; ++g) {
      // The scales of the next group are computed while products run. After the last whole group its own are computed
      // again, which avoids a branch.
      Stages after = w;
      after.advance_if(g + 1 < n_whole);
      own = next;
#pragma unroll
      for (int s = 0; s < W::kSteps; ++s) {
        own.operands(s, a[s % 2]);
        if (s % 2 == 0) blocks.wait_full();
        start(s, g > 0 || s > 0, blocks, a[s % 2], acc);
        if (s == kScalesAtStep) next = tile_of(after, W::kSteps);
        wgmma_wait_for_batches<1>();  // waits for the step before, which may be of the block before
        if (s % 2 == 0)
          release(blocks.empty + blocks.before(), g > 0 || s > 0);
        else
          blocks.advance();
      }
      release(w.empty + w.stage, true);
      w.advance();
    }
    wgmma_wait_for_batches<0>();
    if (n_whole == n_groups) return;
    const uint32_t n_steps = steps_of(n_whole);
    if (n_whole > 0) release(blocks.empty + blocks.before(), true);
    own = tile_of(w, n_steps);
#pragma unroll
    for (int s = 0; s < W::kSteps - 1; ++s) {
      if (s >= n_steps) break;
      own.operands(s, a[0]);
      if (s % 2 == 0) blocks.wait_full();
      start(s, n_whole > 0 || s > 0, blocks, a[0], acc);
      wgmma_wait_for_batches<0>();
      if (s % 2 == 1) {
        release(blocks.empty + blocks.stage, true);
        blocks.advance();
      }
    }
  }

 private:
  // Starts the products of a step.
  static __device__ __forceinline__ void start(int s, bool adds, const Stages& blocks, const uint32_t (&a)[2][4],
                                               float (&acc)[kColumns / 2]) {
    wgmma_begin();
    const uint64_t b = wgmma_operand(blocks.address());
#pragma unroll
    for (int half = 0; half < 2; ++half) wgmma(acc, a[half], b + (s % 2 * 2 + half) * 2, adds || half > 0);
    wgmma_end_batch();
  }
  // Releases a stage for this warp, if is_stage.
  static __device__ __forceinline__ void release(uint64_t* empty, bool is_stage) {
    __syncwarp();
    if (threadIdx.x % 32 == 0 && is_stage) barrier_arrive(empty);
  }
};

// The kernel. Grid: (tiles of rows of x, blocks of rows of W of all parts (matrices), items of experts). An item is
// rows of x that chose the same expert.
template <Format F, uint32_t kWarpgroups, uint32_t kColumns>
__device__ __forceinline__ void linear_wgmma(const WgmmaArgs& with_maps) {
  using P = WgmmaProduct<F, kWarpgroups, kColumns>;
  const LinearArgs& args = with_maps.linear;
  ZRT_DYNAMIC_SHARED(uint8_t, shared);
  begin_product(args);
  const uint32_t n_rows = rows_of_x(args), first_column = blockIdx.x * kColumns;
  const Job job = job_of<P::kRows / 16>(args, blockIdx.y, blockIdx.z, n_rows);
  if (first_column >= job.n_columns) return;
  uint8_t* const first = shared + (1024 - reinterpret_cast<uintptr_t>(shared) % 1024) % 1024;
  uint8_t* const weights = first + P::kXStages * P::kXBytes;
  auto* barriers = reinterpret_cast<uint64_t*>(weights + P::kWStages * P::kRows * P::W::kGroupBytes);
  const Stages w{weights, barriers, barriers + P::kWStages, P::kRows * P::W::kGroupBytes, P::kWStages};
  barriers += 2 * P::kWStages;
  const Stages blocks{first, barriers, barriers + P::kXStages, P::kXBytes, P::kXStages};
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < w.n; ++i) {
      barrier_init(w.full + i, 1);
      barrier_init(w.empty + i, P::kMultipliers);
    }
    for (uint32_t i = 0; i < blocks.n; ++i) {
      barrier_init(blocks.full + i, 1);
      barrier_init(blocks.empty + i, P::kMultipliers);
    }
    publish_barriers();
  }
  __syncthreads();
  // With experts, each item has tiles of x of its own.
  const uint32_t row_of_x = (job.is_expert ? blockIdx.z * kWgmmaTile : 0) + first_column;
  const P product{with_maps.maps[job.part - args.parts], job, args.k, (args.k + P::W::kValues - 1) / P::W::kValues,
                  static_cast<const uint8_t*>(args.x) + row_of_x / kWgmmaTile * wgmma_tile_bytes(args.k) +
                      row_of_x % kWgmmaTile * 128};
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp >= P::kMultipliers) {
    give_registers<P::kCopierRegisters>();
    product.copy(w, blocks, threadIdx.x - P::kMultipliers * 32);
    return;
  }
  take_registers<P::kRegisters>();
  float acc[kColumns / 2];
  if constexpr (F == kBF16)
    product.multiply_shared(w, blocks, warp / 4 * 64, acc);
  else
    product.multiply(w, blocks, warp, lane, acc);
  put_all<kColumns>(args, job, acc, first_column, (job.first_tile + warp) * 16 + lane / 4, lane);
}

}  // namespace zinc_rt::cuda
#endif
