// Rows of W (quantized, weights.cuh) times up to 32 rows of x (quantized, linear_args.h): y[t][m] = dot(w[m], x[t]) +
// bias[m], in the order of docs/arithmetic.md, rule 3. linear.cu instantiates it for 1, 8, 16 and 32 rows.
// - workgroup: a few rows of x by blocks of kT tiles of 16 rows of W. Workgroup i of n computes the blocks i, i + n,
//   ...
// - multiplying warps (eight): they take the groups of 256 values of the workgroup's blocks in turn, multiply each by
//   mma.m16n8k32 (k16 if scales are for 16 values), and write the group's sums v to shared memory. Each warp copies its
//   next groups to shared memory ahead, across the ends of blocks
// - adding warps: they add up these sums in the order of k while the next ones are computed
// Integer sums are exact in any order, and group sums are always added in order, so the shape does not change a bit.
#pragma once

#include "kernels/cuda/fixed_columns.cuh"
#include "kernels/cuda/linear_norm.cuh"

namespace zinc_rt::cuda {

// The number of this workgroup among those that share all blocks, and how many they are.
struct Sharer {
  uint32_t index, count;
};

// Walk goes through the groups of a workgroup's blocks, one block after another: `block` is counted over all blocks of
// all items, `group` is the group within the block.
struct Walk {
  Sharer sharer;
  uint32_t block = sharer.index, group = 0;  // of all blocks of all items; in the block

  // Moves `step` groups further.
  __device__ __forceinline__ void advance(uint32_t step, uint32_t n_groups) {
    group += step;
    while (group >= n_groups) group -= n_groups, block += sharer.count;
  }
};

// Sizes that follow from a format and from C, a class such as OneColumn or Columns that multiplies a group. kUnits:
// units of a group that warps take in turn: 1, or 2 for FIXED16, where a unit is half of the tile's rows.
template <Format F, class C>
struct FewShape {
  static constexpr uint32_t kVectors = 256 / Traits<F>::kBlock * Traits<F>::kBytes / C::kUnits, kTile = 16 * kVectors,
                            kSlot = C::kT * kTile, kDepth = linear_depth(C::kT, C::kColumnTiles, kTile),
                            kAdders = linear_adders(C::kColumnTiles);
};

// Copies a group of the matrix's last n_rows rows, which are fewer than a tile and are stored in the file's layout, to
// `slot` in the layout of a tile. `from`: the group of the first of these rows.
template <Format F>
__device__ __noinline__ void pack_last_rows(uint8_t* slot, const uint8_t* from, uint64_t row_bytes, uint32_t n_rows,
                                            uint32_t n_steps, uint32_t lane) {
  for (uint32_t s = 0; s < n_steps; ++s) pack_rows<F>(slot, from, row_bytes, n_rows, n_steps, s, lane);
}
// Copies half a group (8 rows) of FIXED16 like pack_last_rows(). half: 0 for rows 0 to 7 of the tile, 1 for rows 8 to
// 15.
__device__ __noinline__ void pack_last_half(uint8_t* slot, const uint8_t* from, uint64_t row_bytes, uint32_t n_rows,
                                            uint32_t half, uint32_t lane) {
  const uint32_t n_own = n_rows > 8 * half ? n_rows - 8 * half : 0;
  for (uint32_t s = 0; s < 8; ++s) pack_fixed_half(slot, from + 8 * half * row_bytes, row_bytes, n_own, s, lane);
}

// Computes GLU from the sums of an adding warp: its lanes 0 to 15 hold sums of gate, lanes 16 to 31 those of up for the
// same rows. The shuffle comes before the store, because the output may be the memory of gate.
__device__ __forceinline__ void put_glu(const LinearArgs& args, const Target& target, float sum) {
  const float up = __shfl_xor_sync(0xFFFFFFFFu, sum, 16);
  if (threadIdx.x % 32 < 16 && target.y != nullptr) args.glu[target.y - args.parts[0].y] = activate(args.act, sum) * up;
}

// The work of the adding warps: in each round, they add the sums v of the round's groups to the sums of the block, and
// store complete sums in y. The targets of a block (with bias and residual) are loaded when the block before is
// complete.
template <Format F, class C, bool kGlu, class JobAt>
__device__ __forceinline__ void add_in_order(const LinearArgs& args, const Sharer& sharer, const float* planes,
                                             uint32_t first_column, uint32_t n_groups, uint32_t n_blocks,
                                             uint32_t n_rounds, const JobAt& job_at) {
  constexpr uint32_t kPlane = C::kT * C::kColumns * kColumnPitch;
  constexpr int kValues = C::kT * C::kColumns * 16, kThreads = 32 * FewShape<F, C>::kAdders,
                kEach = (kValues + kThreads - 1) / kThreads;
  Walk added{sharer};
  float acc[kEach] = {};
  Target targets[kEach];
  const auto own_value = [&](int e) { return threadIdx.x - 32 * kWarps + e * kThreads; };
  const auto begin_block = [&] {
    if (added.block >= n_blocks) return;
    Job job = job_at(added.block);
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const uint32_t at = own_value(e), tile = at / 16 / C::kColumns;
      if constexpr (kGlu) job.part = &args.parts[tile];
      if (at < kValues)
        targets[e] = Target(args, job, first_column + at / 16 % C::kColumns,
                            (job.first_tile + (kGlu ? 0 : tile)) * 16 + at % 16);
      acc[e] = 0.0f;
    }
  };
  begin_block();
  for (uint32_t round = 0; round < n_rounds; ++round) {
    __syncthreads();
    // A round of 8 groups may end one block and begin the next.
    for (uint32_t i = 0; i < kWarps && added.block < n_blocks;) {
      const uint32_t n = min(kWarps - i, n_groups - added.group);
      const bool is_last = added.group + n == n_groups;
      const float* from = planes + (round % 2 * kWarps + i) * kPlane;
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        const uint32_t at = own_value(e);
        if (at >= kValues) break;
        const uint32_t own = at / 16 * kColumnPitch + at % 16, own_column = at / 16 % C::kColumns;
#pragma unroll
        for (uint32_t j = 0; j < kWarps; ++j)
          if (j < n) {
            const float v = from[j * kPlane + own];
            acc[e] = Traits<F>::kBlock == 256 ? __fmaf_rn(v, from[j * kPlane + own_column * kColumnPitch + 16], acc[e])
                                              : acc[e] + v;
          }
        if (!is_last) continue;
        const float sum = targets[e].put(acc[e]);
        if constexpr (kGlu) put_glu(args, targets[e], sum);
      }
      added.advance(n, n_groups);
      i += n;
      if (is_last) begin_block();
    }
  }
}

// The kernel. Grid: (workgroups that share the blocks of all parts (matrices) and all items of experts, parts of the
// rows of x). If a block has more than one tile, all matrices consist of whole blocks.
// kNorm: x is one row of floats. Each workgroup normalizes and quantizes it for itself, and keeps it in shared memory
// behind the groups, or in scratch memory.
// kGlu: a block is one tile of gate and the same tile of up.
template <Format F, class C, bool kNorm = false, bool kGlu = false>
__device__ __forceinline__ void linear(const LinearArgs& args, const Sharer& sharer) {
  using T = Traits<F>;
  using S = FewShape<F, C>;
  static_assert(!kGlu || (C::kT == 2 && C::kColumns == 1), "lanes of the warp that adds up");
  constexpr uint32_t kPlane = C::kT * C::kColumns * kColumnPitch;  // floats of the sums v of a group
  constexpr int kOwnTiles = kGlu ? 1 : C::kT;                      // tiles that a block has of one matrix
  ZRT_DYNAMIC_SHARED(float, shared);
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t k = args.k, n_groups = (k + 255) / 256 * C::kUnits, last_steps = (k + 224) % 256 / 32 + 1;
  const uint64_t row_bytes = row_bytes_of<F>(k);
  const bool is_dense = kNorm || args.choices == 0, is_worker = warp < kWarps;
  // Whether it is known which weights to read before the inputs are ready.
  const bool is_known = is_dense || args.knows_choices != 0;
  const auto steps_of = [&](uint32_t g) { return T::kBlock == 256 || g + 1 < n_groups ? 8 : last_steps; };
  uint8_t* const slots = reinterpret_cast<uint8_t*>(shared + 2 * kWarps * kPlane) + warp * S::kDepth * S::kSlot;
  uint32_t n_rows = 0, n_blocks = args.n_blocks;
  const auto job_at = [&](uint32_t block) {
    return is_dense ? job_of<kOwnTiles>(args, block, all_rows(n_rows))
                    : job_of<kOwnTiles>(args, block % args.n_blocks, item_of(args, block / args.n_blocks, n_rows));
  };
  // The distance from a tile of a block to the next. With kGlu it is the distance from gate to up, which is the same
  // for all experts.
  const auto tile_pitch =
      kGlu ? static_cast<const uint8_t*>(args.parts[1].w) - static_cast<const uint8_t*>(args.parts[0].w)
           : static_cast<int64_t>(16 * row_bytes);
  Walk asked{sharer};
  asked.advance(warp, n_groups);
  uint32_t asked_block = kAbsent;
  const uint8_t* asked_from = nullptr;
  // Groups of the rows behind the last whole tile are not copied ahead, because they must be reordered first. Bit i
  // says whether the i-th next slot is for such a group.
  uint32_t is_plain = 0;
  // Starts the copy of the warp's next group of weights.
  const auto ask = [&](uint8_t* slot) {
    is_plain >>= 1;
    if (asked.block < n_blocks) {
      if (asked.block != asked_block) {
        asked_block = asked.block;
        const Job job = job_at(asked_block);
        const bool is_tile = C::kT > 1 || job.first_tile < job.part->rows / 16;
        asked_from = is_tile ? job.w + job.first_tile * 16 * row_bytes + 16 * lane : nullptr;
      }
      if (C::kT > 1 || asked_from != nullptr) {
        const uint32_t vectors = T::kBlock == 256 ? S::kVectors : steps_of(asked.group) * T::kBytes;
#pragma unroll
        for (int t = 0; t < C::kT; ++t) {
          const uint8_t* from = asked_from + t * tile_pitch + asked.group * S::kTile;
          uint8_t* to = slot + t * S::kTile + 16 * lane;
#pragma unroll
          for (uint32_t i = 0; i < S::kVectors; i += 32)
            if (i + lane < vectors) copy_16(to + 16 * i, from + 16 * i);
        }
      } else {
        is_plain |= 1u << (S::kDepth - 1);
      }
    }
    end_copy_batch();
    asked.advance(kWarps, n_groups);
  };
  const auto ask_some = [&](uint32_t first, uint32_t end) {
#pragma unroll 1
    for (uint32_t i = first; i < end; ++i) ask(slots + i * S::kSlot);
  };
  uint32_t n_rounds = 0;
  const auto count_rounds = [&] {
    const uint32_t own_blocks = sharer.index < n_blocks ? (n_blocks - 1 - sharer.index) / sharer.count + 1 : 0;
    n_rounds = (own_blocks * n_groups + kWarps - 1) / kWarps;
  };
  // Everything that does not depend on the inputs happens before the wait for them, also the first copies of weights.
  // Loads queue up behind earlier copies. So the row for a norm is loaded after one group per warp and before the other
  // groups, and the x of experts is loaded before their weights.
  constexpr uint32_t kBefore = kNorm ? 1 : S::kDepth;
  constexpr bool kSetsFirst = C::kColumnTiles == 0;  // Shapes with more columns have no registers to spare for this.
  const uint32_t first_column = blockIdx.y * C::kColumns;
  if (is_dense && is_worker) ask_some(0, kBefore);
  n_rows = kNorm ? 1 : rows_of_x(args);
  const auto count_items = [&] {
    if (!is_dense) n_blocks = args.n_blocks * items_of(args, n_rows);
    count_rounds();
  };
  if (is_known) count_items();
  if (!is_dense && is_known && is_worker) ask_some(0, kBefore);
  ActRows rows;
  if constexpr (kNorm) {
    uint8_t* const behind = reinterpret_cast<uint8_t*>(shared + 2 * kWarps * kPlane) + kWarps * S::kDepth * S::kSlot;
    rows = act_rows(kActOf<F>, args.normed == nullptr ? behind : args.normed + blockIdx.x * normed_bytes(k, kActOf<F>),
                    1, k);
    NormedRow<kActOf<F>, C::kT == 2> row(args);
    begin_product(args);
    row.make(
        shared, [&](const QuantizedEight& q, uint32_t at) { store_eight<kActOf<F>>(q, rows, 0, k, at); },
        [&] { ask_some(kBefore, S::kDepth); });
  } else {
    rows = act_rows(kActOf<F>, C::kIsFloat ? args.quantized : const_cast<void*>(args.x),
                    static_cast<uint64_t>(n_rows) * (is_dense ? 1 : args.x_rows), k);
  }
  C columns{rows, k, lane};
  if constexpr (C::kIsFloat) columns.floats = static_cast<const float*>(args.x);
  if (kSetsFirst && is_dense && is_worker)
    columns.set_rows([&](uint32_t column) { return min(first_column + column, n_rows - 1); });
  if constexpr (!kNorm) begin_product(args);
  if (is_dense && first_column >= n_rows) return;
  if (!is_known) count_items();
  if (is_worker) {
    Walk used{sharer};
    used.advance(warp, n_groups);
    uint32_t used_block = kAbsent;
    uint32_t slot = 0;  // in bytes from the first slot
    const auto ask_x = [&] {
      if (used.block >= n_blocks) return;
      if ((!kSetsFirst && used_block == kAbsent) || (!is_dense && used.block != used_block)) {
        used_block = used.block;
        const Job job = job_at(used_block);
        columns.set_rows([&](uint32_t column) {  // Columns behind the last one read the last one's row again.
          return x_row(args, job, min(first_column + column, job.n_columns - 1));
        });
      }
      columns.ask(used.group, steps_of(used.group));
      if constexpr (C::kIsFloat) columns.is_kept = used.block % args.n_blocks == 0;
    };
    ask_x();
    if (!is_known) ask_some(0, S::kDepth);
    for (uint32_t round = 0; round < n_rounds; ++round) {
      if (used.block < n_blocks) {
        uint8_t* const at = slots + slot;
        wait_for_copy_batches<S::kDepth - 1>();
        if constexpr (C::kT == 1) {
          if (is_plain & 1) {
            const Job job = job_at(used.block);
            const uint32_t first = job.first_tile * 16;
            const uint8_t* from = job.w + first * row_bytes + row_bytes_of<F>(used.group / C::kUnits * 256);
            if constexpr (C::kUnits == 2)
              pack_last_half(at, from, row_bytes, job.part->rows - first, used.group % 2, lane);
            else
              pack_last_rows<F>(at, from, row_bytes, job.part->rows - first, steps_of(used.group), lane);
          }
        }
        __syncwarp();
        Group<F> groups[C::kT];
#pragma unroll
        for (int t = 0; t < C::kT; ++t) groups[t] = {at + t * S::kTile, steps_of(used.group), lane};
        columns.run(groups, used.group, shared + (round % 2 * kWarps + warp) * kPlane);
        __syncwarp();
        ask(at);
        slot = slot + S::kSlot < S::kDepth * S::kSlot ? slot + S::kSlot : 0;
      }
      used.advance(kWarps, n_groups);
      ask_x();
      __syncthreads();
    }
    return;
  }
  add_in_order<F, C, kGlu>(args, sharer, shared, first_column, n_groups, n_blocks, n_rounds, job_at);
}

// The kernel of a launch in which all workgroups share all blocks.
template <Format F, class C, bool kNorm = false, bool kGlu = false>
__device__ __forceinline__ void linear(const LinearArgs& args) {
  linear<F, C, kNorm, kGlu>(args, {blockIdx.x, gridDim.x});
}

}  // namespace zinc_rt::cuda
