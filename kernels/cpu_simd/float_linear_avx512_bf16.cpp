// Defines LINEAR on F16 and BF16 weights in arithmetic `fast` (docs/arithmetic.md). The values of W and x are rounded
// to bf16. A lane adds the products of two neighbours in k at once, and 16 lanes are folded once per kGroup values of
// k. This order is the same for every row of x, however many rows there are. BF16 weights are read in place. F32
// weights, and F16 weights with few rows of x, are multiplied by the exact unit (float_linear_avx512) and have its
// bits.
#include "kernels/cpu_simd/lanes_avx512.h"
#include "kernels/cpu_simd/units.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr std::uint32_t kFewestF16 = 12;  // from this many rows of x on, rounding f16 weights pays
constexpr std::uint32_t kGroup = 2048;    // values of k per group; 8 rows of W then stay in the L1 cache
constexpr std::uint32_t kTokens = 48;     // how many rows of x are multiplied by a group before the next group is read
constexpr std::uint32_t kTileRows = 8;    // number of rows of W in a tile
constexpr std::uint32_t kTileX = 3;       // rows of x in a tile: as many as the registers hold
constexpr std::uint32_t kStep = 32;       // number of values of k in a register

using Bf16 = std::uint16_t;

ZRT_SIMD __m512bh load_all(const Bf16* p) {
  return reinterpret_cast<__m512bh>(_mm512_loadu_si512(p));
}
ZRT_SIMD void store_rounded(Bf16* to, __m512 low, __m512 high) {
  _mm512_storeu_si512(to, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
}

// Rounds n values to bf16 and fills the last register with zeros.
__attribute__((noinline)) void round_f32(const float* from, std::uint32_t n, Bf16* to) {
  std::uint32_t i = 0;
  for (; i + kStep <= n; i += kStep) store_rounded(to + i, _mm512_loadu_ps(from + i), _mm512_loadu_ps(from + i + 16));
  if (i == n) return;
  float last[kStep] = {};
  std::memcpy(last, from + i, (n - i) * sizeof(float));
  store_rounded(to + i, _mm512_loadu_ps(last), _mm512_loadu_ps(last + 16));
}
__attribute__((noinline)) void round_f16(const std::uint16_t* from, std::uint32_t n, Bf16* to) {
  std::uint32_t i = 0;
  for (; i + kStep <= n; i += kStep) store_rounded(to + i, load_f16(from + i).v, load_f16(from + i + 16).v);
  if (i == n) return;
  std::uint16_t last[kStep] = {};
  std::memcpy(last, from + i, (n - i) * sizeof(last[0]));
  store_rounded(to + i, load_f16(last).v, load_f16(last + 16).v);
}

ZRT_SIMD void fill_up(const Bf16* from, std::uint32_t n, Bf16* to) {
  std::memcpy(to, from, n * sizeof(Bf16));
  for (std::uint32_t i = n; i % kStep != 0; ++i) to[i] = 0;
}

// WeightGroup points to kTileRows rows of W, and covers n values of each row along the dimension that is summed over. n
// is a multiple of the values that a register holds.
struct WeightGroup {
  const Bf16* row[kTileRows];
  std::uint32_t n;
};

// Rows are some rows of x, from the group's first value of k on.
struct Rows {
  const Bf16* first;
  std::uint64_t pitch;
};

// Adds to sums[r][j] the dot, over the group, of weight row j and row r of x. The function is not inlined, so that all
// registers are available for its sums.
template <int kX>
__attribute__((noinline)) void add_dots(const WeightGroup& w, Rows x, float (*sums)[kTileRows]) {
  const Bf16* row[kTileRows];
  __m512 sum[kX][kTileRows];
#pragma GCC unroll 8
  for (std::uint32_t j = 0; j < kTileRows; ++j) {
    row[j] = w.row[j];
#pragma GCC unroll 3
    for (int r = 0; r < kX; ++r) sum[r][j] = _mm512_setzero_ps();
  }
  for (std::uint64_t k = 0, n = w.n; k < n; k += kStep) {
    __m512bh v[kX];
#pragma GCC unroll 3
    for (int r = 0; r < kX; ++r) v[r] = load_all(x.first + static_cast<std::uint32_t>(r) * x.pitch + k);
#pragma GCC unroll 8
    for (std::uint32_t j = 0; j < kTileRows; ++j) {
      const __m512bh weight = load_all(row[j] + k);
#pragma GCC unroll 3
      for (int r = 0; r < kX; ++r) sum[r][j] = _mm512_dpbf16_ps(sum[r][j], weight, v[r]);
    }
  }
#pragma GCC unroll 3
  for (int r = 0; r < kX; ++r) {
    Pair pairs[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) pairs[j] = fold_pair({sum[r][j]}, {sum[r][j + 4]});
    add_folds(pairs, sums[r]);
  }
}

ZRT_SIMD void add_tile(const WeightGroup& w, Rows x, std::uint32_t n, float (*sums)[kTileRows]) {
  switch (n) {
    case 1: return add_dots<1>(w, x, sums);
    case 2: return add_dots<2>(w, x, sums);
    default: return add_dots<3>(w, x, sums);
  }
}

// Adds the products with one group to y, for rows [m, m + n_rows) of W, where n_rows <= 8, and n rows of x from `first`
// on. The group begins at k. If n_rows < 8, the last row of W is used again for the missing rows. The first group
// starts from the bias.
void add_group(const cpu::LinearArgs& a, std::uint32_t m, std::uint32_t n_rows, std::uint32_t k, Rows x,
               std::uint32_t first, std::uint32_t n) {
  Bf16 rounded[kTileRows][kGroup];
  WeightGroup group;
  const std::uint32_t n_there = a.k - k < kGroup ? a.k - k : kGroup;
  group.n = (n_there + kStep - 1) / kStep * kStep;
  for (std::uint32_t j = 0; j < kTileRows; ++j) {
    const std::uint64_t row = m + (j < n_rows ? j : n_rows - 1);
    group.row[j] = static_cast<const Bf16*>(a.w) + row * a.k + k;
    if (a.w_dtype == DType::kBF16 && n_there % kStep == 0) continue;
    a.w_dtype == DType::kF16 ? round_f16(group.row[j], n_there, rounded[j])
                             : fill_up(group.row[j], n_there, rounded[j]);
    group.row[j] = rounded[j];
  }
  const auto there = static_cast<__mmask8>((1u << n_rows) - 1);
  const __m256 begin = a.bias != nullptr ? _mm256_maskz_loadu_ps(there, a.bias + m) : _mm256_setzero_ps();
  for (std::uint32_t t = 0; t < n; t += kTileX, x.first += kTileX * x.pitch) {
    const std::uint32_t rows = n - t < kTileX ? n - t : kTileX;
    float* y = a.y + (first + t) * a.y_pitch + m;
    float sums[kTileX][kTileRows];
    for (std::uint32_t r = 0; r < rows; ++r)
      _mm256_storeu_ps(sums[r], k == 0 ? begin : _mm256_maskz_loadu_ps(there, y + r * a.y_pitch));
    add_tile(group, x, rows, sums);
    for (std::uint32_t r = 0; r < rows; ++r) _mm256_mask_storeu_ps(y + r * a.y_pitch, there, _mm256_loadu_ps(sums[r]));
  }
}

}  // namespace

bool has_avx512_bf16() {
  return has_avx512_vnni() && __builtin_cpu_supports("avx512bf16");
}

bool rounds_x_avx512_bf16(DType w, DType, std::uint32_t n) {
  return w == DType::kBF16 || (w == DType::kF16 && n >= kFewestF16);
}

void round_x_avx512_bf16(const void* x, DType, void* y, std::uint32_t k) {
  round_f32(static_cast<const float*>(x), k, static_cast<Bf16*>(y));
}

void float_linear_avx512_bf16(const cpu::LinearArgs& a, std::uint32_t begin, std::uint32_t end) {
  if (!rounds_x_avx512_bf16(a.w_dtype, DType::kF32, a.n)) return float_linear_avx512(a, begin, end);
  alignas(64) Bf16 rounded[kTokens * kGroup];
  for (std::uint32_t first = 0; first < a.n; first += kTokens) {
    const std::uint32_t n = a.n - first < kTokens ? a.n - first : kTokens;
    const auto* rows = static_cast<const std::byte*>(a.x) + first * a.x_pitch;
    for (std::uint32_t k = 0; k < a.k; k += kGroup) {
      Rows x{reinterpret_cast<const Bf16*>(rows) + k, a.x_pitch / sizeof(Bf16)};
      if (a.x_dtype == DType::kF32) {
        x = {rounded, kGroup};
        for (std::uint32_t t = 0; t < n; ++t)
          round_f32(reinterpret_cast<const float*>(rows + t * a.x_pitch) + k, a.k - k < kGroup ? a.k - k : kGroup,
                    rounded + t * kGroup);
      }
      for (std::uint32_t m = begin; m < end; m += kTileRows)
        add_group(a, m, end - m < kTileRows ? end - m : kTileRows, k, x, first, n);
    }
  }
}

}  // namespace zinc_rt::cpu_simd
