// What all kernels of products share: which matrix, expert and rows of x a workgroup computes (Item, Job), how a lane
// reads a group of W (Group), the integer arithmetic of formats with blocks of 256, and the output (put, Target).
#pragma once

#include "kernels/cuda/weights.cuh"

namespace zinc_rt::cuda {

constexpr int kWarps = 8;         // The number of warps of a workgroup that multiply.
constexpr float kNoBias = -0.0f;  // Adding -0 changes no number, so a row without a bias adds this.

// Group reads one group (256 values of k) of a tile of 16 rows of W from shared memory, as one lane of a warp needs it
// for mma.m16n8k32. The lane computes for two rows of the tile: lane / 4 and lane / 4 + 8.
template <Format F>
struct Group {
  const uint8_t* at;
  uint32_t n_steps, lane;  // n_steps: steps of 32 values, 8 or fewer in the last group

  __device__ __forceinline__ Step step(int s) const { return load_step<F, FromShared>(at, n_steps, s, lane); }
  // Return the scale bytes of row lane / 4 + 8 * r: for step s of a 32-value format, or all of a 256-value format.
  __device__ __forceinline__ uint32_t scale(int r, uint32_t s) const {
    const uint8_t* row = at + planes_bytes<F>(n_steps) + (lane / 4 + 8 * r) * Traits<F>::kA;
    return load_scale<F, FromShared>(row, s, 0);
  }
  __device__ __forceinline__ KScales scales(int r) const {
    uint32_t words[4], word;
    load_scales<F, FromShared>(at + planes_bytes<F>(8), lane / 4 + 8 * r, words, word);
    return k_scales<F>(words, word);
  }
};

// Multiplies one step (32 values) of a tile of a 256-value format by x, and adds the result to isum after scaling each
// sub-block by its sub-scale.
template <Format F, bool kSigned>
__device__ __forceinline__ void add_step(int (&isum)[4], const uint32_t (&a)[4], uint2 b, const KScales (&scales)[2],
                                         int s) {
  if constexpr (Traits<F>::kSub == 32) {
    int c[4] = {};
    mma32<kSigned>(c, a, b);
#pragma unroll
    for (int i = 0; i < 4; ++i) isum[i] += sub_scale<F>(scales[i / 2], s) * c[i];
  } else {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int c[4] = {};
      mma16<kSigned>(c, a[2 * half], a[2 * half + 1], half == 0 ? b.x : b.y);
#pragma unroll
      for (int i = 0; i < 4; ++i) isum[i] += sub_scale<F>(scales[i / 2], 2 * s + half) * c[i];
    }
  }
}

// Whether a 256-value format has offsets of codes or minimums. Both are multiplied by the sums of 16 values of x, of
// which a group has 16, so one product with k = 16 computes either.
template <Format F>
constexpr bool kHasSums = Traits<F>::kBlock == 256 && (Traits<F>::kOffset != 0 || Traits<F>::kMin != 0);

// Returns four bytes below 128 with `by` subtracted from each, as signed bytes.
__device__ __forceinline__ uint32_t less_in_bytes(uint32_t bytes, uint32_t by) {
  return ((bytes | 0x80808080u) - by * 0x01010101u) ^ 0x80808080u;
}
// Returns the lane's four bytes of operand A for the product with the sums of x. They belong to the four sums from lane
// % 4 * 4 on, and are minimums, or sub-scales in formats whose codes have an offset.
template <Format F>
__device__ __forceinline__ uint32_t sums_operand(const KScales& s, uint32_t lane) {
  using T = Traits<F>;
  const uint32_t part = lane % 4;
  // A minimum is valid for 32 values, so it is multiplied by two sums of 16.
  if constexpr (T::kMin != 0 && T::kSub == 32)
    return __byte_perm(part < 2 ? s.m[0] : s.m[1], 0, part % 2 == 0 ? 0x1100 : 0x3322);
  const uint32_t(&words)[4] = T::kMin != 0 ? s.m : s.sc;
  const uint32_t word = part < 2 ? (part == 0 ? words[0] : words[1]) : (part == 2 ? words[2] : words[3]);
  // Q3_K stores its sub-scales with 32 added.
  return F == kQ3_K ? less_in_bytes(word, 32) : word;
}
// Computes c, the product of W's minimums or sub-scales (`m`, from sums_operand()) with the sums of x. `sums` has the
// lane's four sums. A sum does not fit a byte, so it is split into 64 * high + low, and both parts are multiplied
// separately. REQUIRES: c is 0.
__device__ __forceinline__ void add_sums(int (&c)[4], const uint32_t (&m)[2], uint2 sums) {
  const uint32_t low = __byte_perm(sums.x & 0x003F003Fu, sums.y & 0x003F003Fu, 0x6420),
                 high = __byte_perm(sums.x >> 6, sums.y >> 6, 0x6420);
  mma16<true>(c, m[0], m[1], high);
#pragma unroll
  for (int& sum : c) sum *= 64;
  mma16<true>(c, m[0], m[1], low);
}
// Returns sum * d - minimums * dmin. sum: the group's sum of products. minimums: its sum of minimums times sums of x.
__device__ __forceinline__ float less_minimums(const KScales& s, float sum, float minimums) {
  return __fmaf_rn(sum, s.d, minimums * -s.dmin);
}
// Returns v of a group. isum: the sum of its products, times their sub-scales. sums: the result of add_sums(), which is
// used for minimums or for the offset of codes.
template <Format F>
__device__ __forceinline__ float super_value(const KScales& s, int isum, int sums) {
  using T = Traits<F>;
  const float sum = static_cast<float>(T::kOffset != 0 ? isum - T::kOffset * sums : isum);
  return T::kMin != 0 ? less_minimums(s, sum, static_cast<float>(sums)) : sum * s.d;
}

// Every thread of a product's kernel calls begin_product() before it reads x and end_product() at its end. Usually the
// first one waits for the inputs. A product that runs beside another one (args.is_beside) waits at its end instead,
// because the end of a kernel tells later kernels that all kernels before it have ended, too.
__device__ __forceinline__ void begin_product(const LinearArgs& args) {
  if (args.is_beside != 0) return;
  wait_for_inputs();
  let_next_start();
}
__device__ __forceinline__ void end_product(const LinearArgs& args) {
  if (args.is_beside == 0) return;
  let_next_start();
  wait_for_inputs();
}

// Item says which rows of x are multiplied by which matrix: all rows in a dense product, else the rows of x that chose
// one expert.
struct Item {
  uint32_t n_columns;      // number of rows of x, the columns of the result
  const int32_t* choices;  // experts: the choice of each column; null: column i is choice `choice` + i
  uint32_t choice, expert;
  bool is_expert, is_valid;  // is_valid is false if the expert's id is out of range; the result is NaN then
};
// Job is what a workgroup computes: an Item, its matrix (w points to the expert's weights), and the first tile of its
// block.
struct Job : Item {
  // w: the weights of the part, with experts those of the job's expert. first_tile: the first tile of the block;
  // kernels whose blocks are not whole tiles use it as the number of the block in its part.
  const uint8_t* w;
  const LinearPart* part;
  uint32_t first_tile;
};

// Returns the item of a dense product: all rows of x.
__device__ __forceinline__ Item all_rows(uint32_t n_rows) {
  Item item{};
  item.n_columns = n_rows;
  item.is_valid = true;
  return item;
}
// Returns item i. It has no columns if there are fewer items than that.
__device__ __forceinline__ Item item_of(const LinearArgs& args, uint32_t i, uint32_t n_rows) {
  if (args.choices == 0) return all_rows(n_rows);
  Item item{};
  item.is_valid = true;
  item.is_expert = true;
  if (args.items == nullptr) {  // Without a list of items, each choice is one.
    item.choice = i;
    item.n_columns = i < n_rows * args.choices ? 1 : 0;
    item.expert = item.n_columns > 0 ? static_cast<uint32_t>(args.ids[i]) : 0;
  } else {
    const int32_t* fields = args.items + 1 + 3 * i;
    const bool is_item = static_cast<int32_t>(i) < args.items[0];
    item.expert = is_item ? static_cast<uint32_t>(fields[0]) : 0;
    item.choices = is_item ? args.order + fields[1] : nullptr;
    item.n_columns = is_item ? static_cast<uint32_t>(fields[2]) : 0;
  }
  item.is_valid = item.expert < args.n_experts;
  if (!item.is_valid) item.expert = 0;
  return item;
}
// Returns the job of block `block` of an item. Blocks are numbered through all parts, and each is kTiles tiles.
template <int kTiles = 1>
__device__ __forceinline__ Job job_of(const LinearArgs& args, uint32_t block, const Item& item) {
  Job job{item};
  const uint32_t p = (block >= args.parts[1].first_block ? 1 : 0) + (block >= args.parts[2].first_block ? 1 : 0);
  job.part = &args.parts[p];
  job.first_tile = (block - job.part->first_block) * kTiles;
  job.w = static_cast<const uint8_t*>(job.part->w);
  if (job.is_expert) job.w += item.expert * args.expert_pitch[p];
  return job;
}
template <int kTiles = 1>
__device__ inline Job job_of(const LinearArgs& args, uint32_t block, uint32_t item, uint32_t n_rows) {
  return job_of<kTiles>(args, block, item_of(args, item, n_rows));
}
// Returns the number of items of a product with experts.
__device__ __forceinline__ uint32_t items_of(const LinearArgs& args, uint32_t n_rows) {
  return args.items == nullptr ? n_rows * args.choices : static_cast<uint32_t>(args.items[0]);
}
// Return the row of y (of x) that belongs to a column of an item. With experts, the row of y is the choice's number.
__device__ __forceinline__ uint32_t y_row(const Item& item, uint32_t column) {
  if (!item.is_expert) return column;
  return item.choices != nullptr ? static_cast<uint32_t>(item.choices[column]) : item.choice;
}
__device__ __forceinline__ uint32_t x_row(const LinearArgs& args, const Item& item, uint32_t column) {
  const uint32_t row = y_row(item, column);
  return item.is_expert && args.x_rows == 1 ? row / args.choices : row;
}
// Returns the number of rows of x (with experts, of tokens) of this step.
__device__ __forceinline__ uint32_t rows_of_x(const LinearArgs& args) {
  return dim_of(args.rows_symbol, args.step);
}
// Stores one result of a job in y, after adding the bias, and adds it to the residual. m: the row of W.
__device__ __forceinline__ void put(const LinearArgs& args, const Job& job, uint32_t column, uint32_t m, float v) {
  const uint64_t at = static_cast<uint64_t>(y_row(job, column)) * job.part->pitch + m;
  if (!job.is_valid) v = nan_value();
  if (job.part->bias != nullptr) v = v + job.part->bias[m];
  job.part->y[at] = v;
  if (args.residual != nullptr) args.residual[at] = args.residual[at] + v;
}

// Target is the place in y for one sum of a thread, together with the bias and residual that are added to the sum. Both
// are loaded when the Target is made, so that they have arrived when the sum is complete.
struct Target {
  float *y = nullptr, *residual = nullptr;  // y null: this thread stores nothing; residual null: there is none
  float bias, before;

  Target() = default;
  // m: the row of W; column: the row of x, as numbered in the job.
  __device__ __forceinline__ Target(const LinearArgs& args, const Job& job, uint32_t column, uint32_t m) {
    if (m >= job.part->rows || column >= job.n_columns) return;
    const uint64_t at = static_cast<uint64_t>(y_row(job, column)) * job.part->pitch + m;
    y = job.part->y + at;
    bias = !job.is_valid ? nan_value() : job.part->bias != nullptr ? job.part->bias[m] : kNoBias;
    if (args.residual == nullptr) return;
    residual = args.residual + at;
    before = *residual;
  }
  // Stores sum + bias in y and adds it to the residual. Returns sum + bias.
  __device__ __forceinline__ float put(float sum) const {
    if (y == nullptr) return 0.0f;
    sum = sum + bias;
    *y = sum;
    if (residual != nullptr) *residual = before + sum;
    return sum;
  }
};

// Stores a lane's sums of a product in y. acc[o * 4 + r * 2 + c] belongs to column first_column + o * 8 + lane % 4 * 2
// + c and to row first_row + 8 * r of W. The residuals of several columns (kAtOnce) are loaded before the first is
// used.
template <uint32_t kColumns>
__device__ __forceinline__ void put_all(const LinearArgs& args, const Job& job, const float (&acc)[kColumns / 2],
                                        uint32_t first_column, uint32_t first_row, uint32_t lane) {
  constexpr uint32_t kOwnRows = 2, kAtOnce = kColumns < 32 ? kColumns / 4 : 8;
  const LinearPart& part = *job.part;
  float bias[kOwnRows] = {kNoBias, kNoBias};
#pragma unroll
  for (int r = 0; r < kOwnRows; ++r)
    if (part.bias != nullptr && first_row + 8 * r < part.rows) bias[r] = part.bias[first_row + 8 * r];
  const auto is_row = [&](int r) { return first_row + 8 * r < part.rows; };
#pragma unroll
  for (int first = 0; first < kColumns / 4; first += kAtOnce) {
    uint64_t at[kAtOnce];
    bool is_column[kAtOnce];
    float before[kAtOnce][kOwnRows] = {};
#pragma unroll
    for (int c = 0; c < kAtOnce; ++c) {
      const uint32_t column = first_column + (first + c) / 2 * 8 + lane % 4 * 2 + c % 2;
      is_column[c] = column < job.n_columns;
      at[c] = is_column[c] ? static_cast<uint64_t>(y_row(job, column)) * part.pitch + first_row : 0;
    }
    if (args.residual != nullptr) {
#pragma unroll
      for (int c = 0; c < kAtOnce; ++c)
#pragma unroll
        for (int r = 0; r < kOwnRows; ++r)
          if (is_column[c] && is_row(r)) before[c][r] = args.residual[at[c] + 8 * r];
    }
#pragma unroll
    for (int c = 0; c < kAtOnce; ++c)
#pragma unroll
      for (int r = 0; r < kOwnRows; ++r) {
        if (!is_column[c] || !is_row(r)) continue;
        const float v = (job.is_valid ? acc[(first + c) / 2 * 4 + r * 2 + c % 2] : nan_value()) + bias[r];
        part.y[at[c] + 8 * r] = v;
        if (args.residual != nullptr) args.residual[at[c] + 8 * r] = before[c][r] + v;
      }
  }
}

}  // namespace zinc_rt::cuda
