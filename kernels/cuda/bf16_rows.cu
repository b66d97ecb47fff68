// Converts rows of x to bf16 for the products of arithmetic `fast` (linear_wgmma.cuh), and stores them in tiles (layout
// in wgmma_args.h). Within a row, values are in the order in which those products have the values of W.
// A step is 32 consecutive places of a row. Each thread converts one step of one row.
// Grid: (rows of the tiles, groups of kBf16RowsThreads steps). With experts, each item (LinearArgs) has a tile of
// kWgmmaTile rows.
#include "kernels/cuda/weights.cuh"

using namespace zinc_rt::cuda;

namespace {

// StepRow holds the 32 values of a step of one row. of[0][c] and of[1][c] are the eight values that the lanes with lane
// % 4 = c read in a product.
struct StepRow {
  float4 of[2][4];
};

// FromQ8 reads quantized rows of x, for products with quantized weights. These products convert W to an operand in
// registers. Of each 16 values, lane c holds the four consecutive values from 4 c on, in the operand's places 2 c, 2 c
// + 1, 2 c + 8 and 2 c + 9. So x must have them in the same places. kIs256: x is q8a256, else q8a32.
template <bool kIs256>
struct FromQ8 {
  static constexpr bool kIsInRegisters = true;
  const ActRows& rows;
  uint32_t k;

  // Returns step s (32 values) of row `row` of x as floats.
  __device__ StepRow step(uint64_t row, uint32_t s) const {
    const uint4* at = reinterpret_cast<const uint4*>(rows.qs + row * k + s * 32);
    const uint4 low = at[0], high = at[1];
    // The words are put back in the order of k, which undoes word_of().
    const uint32_t words[8] = {low.x, low.z, high.x, high.z, low.y, low.w, high.y, high.w};
    const float d = kIs256 ? rows.d[row * (k / 256) + s / 8] : rows.d[row * (k / 32) + s];
    StepRow values;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const auto value = [&](int byte) { return static_cast<float>(static_cast<int8_t>(words[i] >> (8 * byte))) * d; };
      values.of[i / 4][i % 4] = make_float4(value(0), value(1), value(2), value(3));
    }
    return values;
  }
};

// FromFloats reads float rows of x, for products with float weights. Its values are in the order in which float weights
// are stored (lane_place() in weights.cuh). In a whole group of 256 values, the eight values of[0][c] and of[1][c]
// belong to one of the 16 lanes of the order of sums. In a last, shorter group they are eight consecutive values.
struct FromFloats {
  static constexpr bool kIsInRegisters = false;
  const float* rows;
  uint32_t k;

  // Returns step s (32 values) of row `row` of x.
  __device__ StepRow step(uint64_t row, uint32_t s) const {
    const float* x = rows + row * k;
    const uint32_t first = s * 32 / 256 * 256;
    StepRow values;
    if (k - first < 256) {
#pragma unroll
      for (int i = 0; i < 8; ++i) values.of[i % 2][i / 2] = *reinterpret_cast<const float4*>(x + s * 32 + i * 4);
      return values;
    }
    const uint32_t at = s * 32 - first;
    const float* lanes = x + first + at / 128 * 128 + at % 128 / 8;
    float4 v[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = *reinterpret_cast<const float4*>(lanes + i * 16);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float4(&h)[8] = v;
      const int i = 4 * half;
      values.of[half][0] = make_float4(h[i].x, h[i + 1].x, h[i + 2].x, h[i + 3].x);
      values.of[half][1] = make_float4(h[i].y, h[i + 1].y, h[i + 2].y, h[i + 3].y);
      values.of[half][2] = make_float4(h[i].z, h[i + 1].z, h[i + 2].z, h[i + 3].z);
      values.of[half][3] = make_float4(h[i].w, h[i + 1].w, h[i + 2].w, h[i + 3].w);
    }
    return values;
  }
};

// Converts the values of step s to bf16 and stores them in row `row` of a tile. kIsInRegisters: whether the products
// have W in registers (quantized weights) or in shared memory (float weights); the order within the step depends on
// that.
template <bool kIsInRegisters>
__device__ void put_step(uint8_t* tile, uint32_t row, uint32_t s, const StepRow& values) {
  uint8_t* line = tile + s / 2 * kWgmmaBlockBytes + row * 128;
  const auto put = [&](uint32_t piece, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    *reinterpret_cast<uint4*>(line + ((s % 2 * 4 + piece) ^ row % 8) * 16) = make_uint4(a, b, c, d);
  };
  const auto low = [](const float4& v) { return bf16_pair(v.x, v.y); };
  const auto high = [](const float4& v) { return bf16_pair(v.z, v.w); };
  const float4(&v)[2][4] = values.of;
  if constexpr (kIsInRegisters) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      put(2 * half, low(v[half][0]), low(v[half][1]), low(v[half][2]), low(v[half][3]));
      put(2 * half + 1, high(v[half][0]), high(v[half][1]), high(v[half][2]), high(v[half][3]));
    }
  } else {
#pragma unroll
    for (int c = 0; c < 4; ++c) put(c, low(v[0][c]), high(v[0][c]), low(v[1][c]), high(v[1][c]));
  }
}

// The body of the kernels below: converts one step of the workgroup's row. Without experts, that is row blockIdx.x of
// x. With experts, it is the row of x for the choice at place blockIdx.x % kWgmmaTile of item blockIdx.x / kWgmmaTile.
template <class From>
__device__ __forceinline__ void widen(const Bf16RowsArgs& args, const From& from) {
  const uint32_t n = dim_of(args.rows_symbol, args.step), s = blockIdx.y * kBf16RowsThreads + threadIdx.x;
  uint32_t row = blockIdx.x;
  if (s * 32 >= args.k) return;
  if (args.items != nullptr) {
    const uint32_t item = blockIdx.x / kWgmmaTile;
    if (static_cast<int32_t>(item) >= args.items[0]) return;
    const int32_t* fields = args.items + 1 + 3 * item;
    if (static_cast<int32_t>(blockIdx.x % kWgmmaTile) >= fields[2]) return;
    const auto choice = static_cast<uint32_t>(args.order[fields[1] + blockIdx.x % kWgmmaTile]);
    row = args.x_rows == 1 ? choice / args.choices : choice;
  } else if (row >= n) {
    return;
  }
  uint8_t* tile = static_cast<uint8_t*>(args.to) + blockIdx.x / kWgmmaTile * wgmma_tile_bytes(args.k);
  put_step<From::kIsInRegisters>(tile, blockIdx.x % kWgmmaTile, s, from.step(row, s));
}

// Returns the quantized rows of x.
__device__ __forceinline__ ActRows quantized(const Bf16RowsArgs& args) {
  const uint64_t n =
      static_cast<uint64_t>(dim_of(args.rows_symbol, args.step)) * (args.items != nullptr ? args.x_rows : 1);
  return q8_rows(const_cast<void*>(args.x), n, args.k);
}

}  // namespace

static_assert(kBf16RowsThreads == 128);
extern "C" __global__ void __launch_bounds__(128) bf16_rows_q8a32(const __grid_constant__ Bf16RowsArgs args) {
  wait_for_inputs();
  let_next_start();
  widen(args, FromQ8<false>{quantized(args), args.k});
}
extern "C" __global__ void __launch_bounds__(128) bf16_rows_q8a256(const __grid_constant__ Bf16RowsArgs args) {
  wait_for_inputs();
  let_next_start();
  widen(args, FromQ8<true>{quantized(args), args.k});
}
extern "C" __global__ void __launch_bounds__(128) bf16_rows_f32(const __grid_constant__ Bf16RowsArgs args) {
  wait_for_inputs();
  let_next_start();
  widen(args, FromFloats{static_cast<const float*>(args.x), args.k});
}
