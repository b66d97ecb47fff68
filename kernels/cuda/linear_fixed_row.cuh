// One row of x times FIXED16 rows of W.
// - unit: half a group of a tile (fixed_weights.cuh): 8 rows of W by 256 values of k, 4 KiB. A warp loads it to
//   registers, 16 bytes per lane at a time
// - warps take the units of their workgroup's blocks in turn, and each has loads for the next kDepth units under way.
//   No warp waits for another before the workgroup's last unit
// - the group sums v of all units are stored in shared memory; then each thread adds up a whole row in order
// x is in shared memory as operands B: for each pair of steps of 32 values and each digit, 16 bytes for each of the
// lanes 0 to 3 (lane % 4). Even columns have the high digits and odd columns the low ones, so a lane gets all four sums
// of its row.
#pragma once

#include "kernels/cuda/linear.cuh"

namespace zinc_rt::cuda {

// HalfGroup holds one lane's part of a unit in registers. high and low are W's digits by pair of steps; the lane has
// values of row lane / 4 of the unit's 8 rows. scale is the scale of that row, as the bits of bf16.
struct HalfGroup {
  uint4 high[4], low[4];
  uint32_t scale;

  // Loads the lane's part of the unit at address `half`.
  __device__ __forceinline__ void load(const uint8_t* half, uint32_t lane) {
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      const uint8_t* at = half + pair * 512 + lane * 16;
      high[pair] = stream_16(at);
      low[pair] = stream_16(at + kFixedPlane);
    }
    scale = stream_2(half + 2 * kFixedPlane + lane / 4 * 2);
  }
  // Returns v of row lane / 4: the product of the group, before it is multiplied by the scale of x. x: the group's
  // operands B, beginning at the lane's words.
  __device__ __forceinline__ float value(const uint4* x) const {
    int even[4] = {}, odd[4] = {};
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      const uint4 b = x[pair * 8], h = high[pair], l = low[pair];
      const uint32_t first[4] = {h.x, l.x, h.y, l.y}, second[4] = {h.z, l.z, h.w, l.w};
      mma32<true>(even, first, uint2{b.x, b.y});
      mma32<true>(odd, second, uint2{b.z, b.w});
    }
    return fixed_value(even[0] + odd[0], even[2] + odd[2], even[1] + odd[1], even[3] + odd[3],
                       __uint_as_float(scale << 16));
  }
};

// RowOf tells what x is in global memory: a row that QUANTIZE has written, or floats that each workgroup quantizes
// itself, either as they are or after a norm.
enum class RowOf { kQuantized, kFloats, kNorm };

// RowOperand is the row of x in a workgroup's shared memory: `words` has the operands B of all groups, and d has the
// scale of each group.
struct RowOperand {
  uint4* words;
  float* d;
  uint32_t n_groups;

  // Stores the lane's eight quantized values of a group. at: index in the row of the first of them.
  __device__ __forceinline__ void put(const QuantizedEight& q, uint32_t at) const {
    const uint32_t lane = threadIdx.x % 32, step = lane / 4, g = at / 256;
    auto* to = reinterpret_cast<uint2*>(words + g * 32 + step / 2 * 8 + lane % 4) + step % 2;
    to[0] = uint2{q.words[0], q.words[1]};
    to[8] = uint2{q.low[0], q.low[1]};
    if (lane == 0) d[g] = q.d;
  }
  // Copies a quantized row. kAhead: loads of 16 bytes that a thread issues before it stores the first.
  template <uint32_t kAhead>
  __device__ __forceinline__ void copy(const ActRows& from) const {
    const auto* codes = reinterpret_cast<const uint4*>(from.qs);
    const uint32_t n = n_groups * 32;
    for (uint32_t first = threadIdx.x; first < n; first += kAhead * kFixedRowThreads) {
      uint4 v[kAhead];
#pragma unroll
      for (uint32_t j = 0; j < kAhead; ++j)
        if (const uint32_t i = first + j * kFixedRowThreads; i < n) v[j] = codes[i];
#pragma unroll
      for (uint32_t j = 0; j < kAhead; ++j) {
        const uint32_t i = first + j * kFixedRowThreads;
        if (i >= n) break;
        auto* to = reinterpret_cast<uint32_t*>(words + i / 32 * 32 + i % 16 / 4 * 8 + i / 16 % 2 * 4) + i % 4;
        to[0] = v[j].x, to[4] = v[j].y, to[8] = v[j].z, to[12] = v[j].w;
      }
    }
    for (uint32_t g = threadIdx.x; g < n_groups; g += kFixedRowThreads) d[g] = from.d[g];
  }
  // Quantizes a row of floats. keep(values, at) is also called for each lane's eight values, so that the caller can
  // store them elsewhere.
  template <class Keep>
  __device__ __forceinline__ void quantize(const float* from, const Keep& keep) const {
    constexpr uint32_t kAhead = 4;
    const uint32_t k = n_groups * 256;
    for (uint32_t first = threadIdx.x / 32; first < n_groups; first += kAhead * kWarps) {
      Eight x[kAhead];
      const auto at_of = [&](uint32_t j) { return (first + j * kWarps) * 256 + first_of_eight(); };
#pragma unroll
      for (uint32_t j = 0; j < kAhead; ++j) x[j] = load_eight(from, at_of(j), k);
#pragma unroll
      for (uint32_t j = 0; j < kAhead; ++j) {
        if (first + j * kWarps >= n_groups) break;
        const QuantizedEight q = quantized<kQ16A256>(x[j]);
        put(q, at_of(j));
        keep(q, at_of(j));
      }
    }
  }
};

// The kernel. Grid: workgroups that share the blocks of all parts (matrices). All matrices consist of whole tiles.
// kDepth: units that a warp loads ahead; 1 if no warp has more than one unit. kGlu: a block is half a tile of gate and
// half a tile of up, in this order.
template <RowOf kRow, uint32_t kDepth, bool kGlu = false>
__device__ __forceinline__ void fixed_row(const LinearArgs& args) {
  constexpr uint32_t kParts = kGlu ? 2 : 1, kRows = kFixedRowRows;
  constexpr bool kNorm = kRow == RowOf::kNorm;
  ZRT_DYNAMIC_SHARED(float, shared);
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t k = args.k, n_groups = k / 256, n_all = kParts * n_groups, n_blocks = args.n_blocks;
  const RowOperand x{reinterpret_cast<uint4*>(shared), shared + n_groups * 128, n_groups};
  float* const v = shared + fixed_row_x_bytes(n_groups) / 4;
  const uint64_t tile_pitch = static_cast<uint64_t>(n_groups) * kFixedGroup;
  const auto job_at = [&](uint32_t block, uint32_t part) {
    Job job = job_of(args, block, all_rows(1));
    if constexpr (kGlu) job.part = &args.parts[part], job.w = static_cast<const uint8_t*>(job.part->w);
    return job;
  };
  Walk asked{{blockIdx.x, gridDim.x}};
  asked.advance(warp, n_all);
  const auto ask = [&](HalfGroup& to) {
    if (asked.block < n_blocks) {
      const uint32_t part = kGlu && asked.group >= n_groups ? 1 : 0, g = asked.group - part * n_groups;
      const Job job = job_at(asked.block, part);
      to.load(job.w + job.first_tile / 2 * tile_pitch + g * kFixedGroup + job.first_tile % 2 * kFixedHalf, lane);
    }
    asked.advance(kWarps, n_all);
  };
  HalfGroup halves[kDepth];
  const auto ask_rest = [&] {
#pragma unroll
    for (uint32_t j = 1; j < kDepth; ++j) ask(halves[j]);
  };
  ask(halves[0]);
  // Loads queue up behind earlier ones. So the row for a norm is loaded after one unit per warp and before the other
  // units.
  if constexpr (kNorm) {
    NormedRow<kQ16A256, false> row(args);
    let_next_start();
    if (args.is_beside == 0) wait_for_inputs();
    row.make(v, [&](const QuantizedEight& q, uint32_t at) { x.put(q, at); }, ask_rest);
  } else {
    ask_rest();
    let_next_start();
    if (args.is_beside == 0) wait_for_inputs();
    const uint32_t n_rows = rows_of_x(args);
    if constexpr (kRow == RowOf::kFloats) {
      const ActRows kept = q16_rows(args.quantized, 1, k);
      x.quantize(static_cast<const float*>(args.x), [&](const QuantizedEight& q, uint32_t at) {
        if (blockIdx.x == 0) store_eight<kQ16A256>(q, kept, 0, k, at);
      });
    } else {
      x.copy<kDepth == 1 ? 1 : 4>(q16_rows(const_cast<void*>(args.x), 1, k));
    }
    if (n_rows == 0) return;
    __syncthreads();
  }
  const uint32_t n_own = blockIdx.x < n_blocks ? (n_blocks - 1 - blockIdx.x) / gridDim.x + 1 : 0,
                 at_once = fixed_row_blocks(n_all);
  for (uint32_t begin = 0; begin < n_own; begin += at_once) {
    const uint32_t n = min(n_own - begin, at_once), n_units = n * n_all, n_sums = n * kParts * kRows;
    // Returns where sum i of the blocks is stored. Its bias and residual are loaded while the warps multiply.
    const auto target_of = [&](uint32_t i) {
      if (i >= n_sums) return Target();
      const Job job = job_at(blockIdx.x + (begin + i / kRows / kParts) * gridDim.x, i / kRows % kParts);
      return Target(args, job, 0, job.first_tile * kRows + i % kRows);
    };
    Target target = target_of(threadIdx.x);
    uint32_t group = warp;
    const auto use = [&](const HalfGroup& half, uint32_t unit) {
      while (group >= n_groups) group -= n_groups;
      const float value = half.value(x.words + group * 32 + lane % 8);
      if (lane % 4 == 0) v[unit * kRows + lane / 4] = value;
      group += kWarps;
    };
    for (uint32_t unit = warp; unit < n_units; unit += kDepth * kWarps) {
#pragma unroll
      for (uint32_t j = 0; j < kDepth; ++j) {
        if (unit + j * kWarps >= n_units) break;
        use(halves[j], unit + j * kWarps);
        if constexpr (kDepth > 1) ask(halves[j]);
      }
    }
    __syncthreads();
    // The loop's condition is the same for all lanes of a warp, because GLU's shuffle needs all of them.
    for (uint32_t i = threadIdx.x; i / 32 * 32 < n_sums; i += kFixedRowThreads) {
      if (i != threadIdx.x) target = target_of(i);
      const float* from = v + i / kRows * n_groups * kRows + i % kRows;
      float sum = 0.0f;
      if (i < n_sums)
#pragma unroll 8
        for (uint32_t g = 0; g < n_groups; ++g) sum = __fmaf_rn(from[g * kRows], x.d[g], sum);
      sum = target.put(sum);
      if constexpr (kGlu) {
        const float up = __shfl_xor_sync(0xFFFFFFFFu, sum, kRows);
        if (i / kRows % 2 == 0 && target.y != nullptr)
          args.glu[target.y - args.parts[0].y] = activate(args.act, sum) * up;
      }
    }
    if (begin + at_once < n_own) __syncthreads();
  }
}

}  // namespace zinc_rt::cuda
