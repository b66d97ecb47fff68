// LINEAR in arithmetic `fast` (docs/arithmetic.md) with AMX's products of bf16, for rows of x that were rounded to bf16
// once for all workgroups (round_x), if there are kFewestRows of them or more, and for weights of all types but F32.
// Everything else is computed by the exact sets or by AVX-512 BF16.
//
// Groups of panels are widened to bf16 once for all rows of x of a sweep and stay in the second-level cache. 32 rows of
// x are multiplied by two panels at a time: four tiles of sums, where each loaded tile serves two products.
#include "base/platform/processor_access.h"
#include "kernels/cpu_simd/dots_avx512.h"
// The dots header comes first, because the files after it use its names.
#include "kernels/cpu_simd/linear_source.h"
#include "kernels/cpu_simd/tiles_amx.h"
#include "kernels/cpu_simd/units.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr std::uint32_t kFewestRows = 32;  // with fewer rows, converting W costs more than AMX gains
// Rows of x that are multiplied by values of W before these must be converted again.
constexpr std::uint32_t kSweep = 512;
constexpr std::uint32_t kPanels = 4;      // panels whose sums are contiguous, so that y is stored in long rows
constexpr std::uint32_t kManyRows = 128;  // from this many rows of x on, no cache keeps y until it is read
constexpr std::uint32_t kStep = 32;       // values of k in a tile
constexpr std::uint32_t kGroups = 4;      // groups that are converted at once
constexpr std::uint32_t kGroupSteps = kGroupValues / kStep, kSteps = kGroups * kGroupSteps;

using Bf16 = std::uint16_t;
// A tile: kStep values of k for 16 rows of W. A row of the tile has two values of k for each row of W.
using WeightTile = Bf16[kStep / 2][2 * kLanes];
using SumTile = float[kTileRows][16];

ZRT_SIMD __m512i round_both(const Floats& low, const Floats& high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high.v, low.v));
}

// ---- quantized weights ----

// A code becomes a float by being placed among the bits of a large float: 128 + code for codes below 128, and 2^15 +
// 128 + code for signed ones. The multiply-add that scales it subtracts the large float again.
template <class F>
struct Places {
  static constexpr float kBase = F::kSigned ? 32768.0f : 128.0f;
  static constexpr int kByte = F::kSigned ? 1 : 2;  // which byte of the float holds the code
  static constexpr __mmask64 kMask = 0x1111111111111111u << kByte;
  static_assert(F::kSigned || F::kLargest < 128);

  // The indices of the codes for pair `pair` of each word, for rows from 8 * half on. The two lanes of a row are
  // neighbours.
  struct Order {
    alignas(64) std::uint8_t from[64];
  };
  static constexpr Order order_of(int pair, int half) {
    Order order{};
    for (int lane = 0; lane < 16; ++lane)
      order.from[4 * lane + kByte] = static_cast<std::uint8_t>(32 * half + lane / 2 * 4 + 2 * pair + lane % 2);
    return order;
  }
  static constexpr Order kOrders[2][2] = {{order_of(0, 0), order_of(0, 1)}, {order_of(1, 0), order_of(1, 1)}};

  ZRT_SIMD Floats floats(const Ints& codes, int pair, int half) {
    return {_mm512_castsi512_ps(_mm512_mask_permutexvar_epi8(_mm512_castps_si512(splat(kBase).v), kMask,
                                                             load_ints(kOrders[pair][half].from).v, codes.v))};
  }
};

// Repeats a number of each row for pairs of values: rows 0 to 7, then 8 to 15, each number twice.
struct Twice {
  Floats half[2];
};
ZRT_SIMD Twice twice(const Floats& rows) {
  const __m512i low = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  return {{{_mm512_permutexvar_ps(low, rows.v)},
           {_mm512_permutexvar_ps(_mm512_or_si512(low, _mm512_set1_epi32(8)), rows.v)}}};
}

// Converts 32 or 16 values of k: value = code * scale + begin.
struct Line {
  Twice scale, begin;
};
template <class F>
ZRT_SIMD Line line_of(const Group& group, int s, int part) {
  constexpr int kOffset = F::kSigned ? 128 : F::kOffset;
  Floats scale, begin;
  [[maybe_unused]] const int j = 32 / F::kSub * s + part;
  if constexpr (F::kIsK)
    scale = F::d(group, 0) * to_floats(F::sc(group, j));
  else if constexpr (F::kHalves)
    scale = F::d(group, s, part);
  else
    scale = F::d(group, s);
  const Floats base = splat(-(Places<F>::kBase + kOffset));
  if constexpr (F::kHasMin && F::kIsK)
    begin = fma(base, scale, to_floats(F::min(group, j)) * F::m(group, 0));
  else if constexpr (F::kHasMin)
    begin = fma(base, scale, F::m(group, s));
  else
    begin = base * scale;
  return {twice(scale), twice(begin)};
}

template <class F>
void widen(const Group& group, WeightTile* to) {
  constexpr int kParts = 32 / F::kSub;
  for (int s = 0; s < group.n_blocks; ++s) {
    Line lines[kParts];
    for (int part = 0; part < kParts; ++part) lines[part] = line_of<F>(group, s, part);
    F::each_word(group, s, [&](auto w, const Ints& signed_or_not) ZRT_INLINE_LAMBDA {
      const Ints codes = F::kSigned ? signed_or_not ^ every_byte(128) : signed_or_not;
      const Line& line = lines[kParts == 1 ? 0 : w / 4];
      repeat<2>([&](auto pair) ZRT_INLINE_LAMBDA {
        Floats half[2];
        repeat<2>([&](auto h) ZRT_INLINE_LAMBDA {
          half[h] = fma(Places<F>::floats(codes, pair, h), line.scale.half[h], line.begin.half[h]);
        });
        store(to[s][2 * w + pair], Ints{round_both(half[0], half[1])});
      });
    });
  }
}

// ---- F16 and BF16 weights ----

// Transposes 16 rows of 16 words.
ZRT_SIMD void transpose(const __m512i (&rows)[16], void* to) {
  __m512i two[16], four[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    two[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    two[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  // A quarter of four[4 q + c] is a column of rows 4 q to 4 q + 3.
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    four[i] = _mm512_unpacklo_epi64(two[i], two[i + 2]);
    four[i + 1] = _mm512_unpackhi_epi64(two[i], two[i + 2]);
    four[i + 2] = _mm512_unpacklo_epi64(two[i + 1], two[i + 3]);
    four[i + 3] = _mm512_unpackhi_epi64(two[i + 1], two[i + 3]);
  }
  const auto column = [to](int i, __m512i v)
                          ZRT_INLINE_LAMBDA { _mm512_storeu_si512(static_cast<std::byte*>(to) + i * kVectorPitch, v); };
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i a = _mm512_shuffle_i32x4(four[c], four[4 + c], 0x44);
    const __m512i b = _mm512_shuffle_i32x4(four[8 + c], four[12 + c], 0x44);
    const __m512i d = _mm512_shuffle_i32x4(four[c], four[4 + c], 0xEE);
    const __m512i e = _mm512_shuffle_i32x4(four[8 + c], four[12 + c], 0xEE);
    column(c, _mm512_shuffle_i32x4(a, b, 0x88));
    column(4 + c, _mm512_shuffle_i32x4(a, b, 0xDD));
    column(8 + c, _mm512_shuffle_i32x4(d, e, 0x88));
    column(12 + c, _mm512_shuffle_i32x4(d, e, 0xDD));
  }
}

// Converts kStep values, of which the first n are read and the others are zeros.
template <bool kIsF16>
ZRT_SIMD __m512i load_some(const std::uint16_t* from, std::uint32_t n) {
  const __m512i halves = n >= kStep ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi16((1u << n) - 1, from);
  if constexpr (!kIsF16) return halves;
  return round_both({_mm512_cvtph_ps(_mm512_castsi512_si256(halves))},
                    {_mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1))});
}

// Converts a group of a panel whose rows are stored as in a plain matrix. The last row is used again for missing rows.
template <bool kIsF16>
void widen_rows(const cpu::LinearArgs& a, const PanelRows& rows, std::uint32_t g, WeightTile* to) {
  const auto* w = static_cast<const std::uint16_t*>(a.w) + g * kGroupValues;
  for (std::uint32_t k = g * kGroupValues; k < a.k && k < (g + 1) * kGroupValues; k += kStep, w += kStep) {
    __m512i values[kTileRows];
#pragma GCC unroll 16
    for (std::uint32_t r = 0; r < kTileRows; ++r) {
      const std::uint64_t row = rows.first + r < rows.end ? rows.first + r : rows.end - 1;
      values[r] = load_some<kIsF16>(w + row * a.k, a.k - k);
    }
    transpose(values, *to++);
  }
}

// ---- products ----

// Loads a tile of rows of x, from a step of k on.
struct XTile {
  const Bf16* at;
  std::uint64_t pitch;  // bytes
};

// The sums of a tile of rows of x. Tiles are not a power of two bytes apart, because a tile is loaded while stores to
// the previous one are still pending, and the processor treats addresses with equal low bits as the same.
struct Sums {
  alignas(64) SumTile of[kPanels];
  float unused[kTileRows];
};

// Whether y is written past the caches. That is faster if y has many whole cache lines in different pages, because each
// of them would be read before it is written.
bool streams(const cpu::LinearArgs& a) {
  return a.n >= kManyRows && reinterpret_cast<std::uintptr_t>(a.y) % kVectorPitch == 0 &&
         a.y_pitch * sizeof(float) % kVectorPitch == 0;
}
// store_rows for a panel of which all rows are stored.
ZRT_SIMD void stream_row(const cpu::LinearArgs& a, std::uint32_t t, std::uint32_t panel, const float* sums) {
  const Floats v = load(sums);
  _mm512_stream_ps(a.y + t * a.y_pitch + panel, a.bias != nullptr ? (v + load(a.bias + panel)).v : v.v);
}

// Output is the part of y to which the sums of a block of rows will be written. The rows of this part are in different
// memory pages. Their cache lines are prefetched during the products.
struct Output {
  // Null: nothing is prefetched, because the products do not complete the sums yet or y is written past the caches.
  float* at;
  std::uint64_t pitch;
  ZRT_MEMBER void ask_for(std::uint32_t row) const {
    if (at == nullptr) return;
    const auto* line = reinterpret_cast<const std::byte*>(at + row * pitch);
    __builtin_prefetch(line, 1);
    __builtin_prefetch(line + 64, 1);
  }
};

// Adds n_steps tiles of k to the sums of kX tiles of rows of x by kW panels. The first step starts from zero.
template <int kX, int kW>
ZRT_SIMD void multiply(const XTile (&x)[2], const WeightTile (*w)[kSteps], std::uint32_t n_steps, bool begins,
                       Sums* sums, std::uint32_t panel, const Output& y) {
  const auto each = [](auto&& fn) ZRT_INLINE_LAMBDA {
    repeat<kX>([&](auto i) ZRT_INLINE_LAMBDA { repeat<kW>([&](auto j) ZRT_INLINE_LAMBDA { fn(i, j); }); });
  };
  if (begins)
    each([&](auto i, auto j) ZRT_INLINE_LAMBDA { zero_tile<2 * i + j>(); });
  else
    each([&](auto i, auto j) ZRT_INLINE_LAMBDA { load_tile<2 * i + j>(sums[i].of[panel + j], kVectorPitch); });
  for (std::uint32_t s = 0; s < n_steps; ++s) {
    load_tile<4>(x[0].at + kStep * s, x[0].pitch);
    load_tile<6>(w[0][s], kVectorPitch);
    add_tile_products_bf16<0, 4, 6>();
    if constexpr (kW == 2) {
      load_tile<7>(w[1][s], kVectorPitch);
      add_tile_products_bf16<1, 4, 7>();
    }
    if constexpr (kX == 2) {
      load_tile<5>(x[1].at + kStep * s, x[1].pitch);
      add_tile_products_bf16<2, 5, 6>();
      if constexpr (kW == 2) add_tile_products_bf16<3, 5, 7>();
    }
    for (std::uint32_t row = s; row < kX * kTileRows; row += n_steps) y.ask_for(row);
  }
  each([&](auto i, auto j) ZRT_INLINE_LAMBDA { store_tile<2 * i + j>(sums[i].of[panel + j], kVectorPitch); });
}

// Multiplies at most kSweep rows of x by at most kPanels panels.
struct Block {
  const cpu::LinearArgs& a;
  const PanelRows* panels;
  std::uint32_t n_panels, first;
  RowTiles rows;
  bool is_streamed;

  // Multiplies kX tiles of rows from `tile` on by the values of k from `k` on.
  template <int kX>
  void multiply_tiles(std::uint32_t tile, std::uint32_t k, std::uint32_t n_steps, const WeightTile (*w)[kSteps],
                      Sums* sums) const {
    const auto tile_of = [&](std::uint32_t i) ZRT_INLINE_LAMBDA {
      const auto* x = static_cast<const std::byte*>(a.x) + (first + rows.first_of(i)) * a.x_pitch;
      return XTile{reinterpret_cast<const Bf16*>(x) + k, a.x_pitch};
    };
    const XTile x[2] = {tile_of(tile), tile_of(tile + kX - 1)};
    const bool ends = k + n_steps * kStep >= a.k;
    for (std::uint32_t p = 0; p < n_panels; p += 2) {
      const Output y{ends && !is_streamed ? a.y + (first + rows.first_of(tile)) * a.y_pitch + panels[p].first : nullptr,
                     a.y_pitch};
      if (p + 1 < n_panels)
        multiply<kX, 2>(x, w + p, n_steps, k == 0, sums, p, y);
      else
        multiply<kX, 1>(x, w + p, n_steps, k == 0, sums, p, y);
    }
    if (!ends) return;
    for (std::uint32_t i = 0; i < kX; ++i) {
      const std::uint32_t at = rows.first_of(tile + i);
      for (std::uint32_t j = (tile + i) * kTileRows - at; j < kTileRows; ++j) store_row(first + at + j, j, sums[i]);
    }
  }

  ZRT_MEMBER void store_row(std::uint32_t t, std::uint32_t row, const Sums& sums) const {
    for (std::uint32_t p = 0; p < n_panels; ++p) {
      const auto& [panel, begin, end] = panels[p];
      if (is_streamed && panel % kLanes == 0 && begin == panel && end - begin == kLanes)
        stream_row(a, t, panel, sums.of[p][row]);
      else
        store_rows(a, t, panel, begin, end, sums.of[p][row]);
    }
  }

  // widen_group(panel, g, tiles) converts group g of a panel.
  template <class Widen>
  void run(Widen&& widen_group) const {
    constexpr std::uint32_t kValues = kGroups * kGroupValues;
    alignas(64) WeightTile w[kPanels][kSteps];
    Sums sums[kSweep / kTileRows];
    for (std::uint32_t k = 0; k < a.k; k += kValues) {
      const std::uint32_t left = (a.k - k + kStep - 1) / kStep, n_steps = left < kSteps ? left : kSteps;
      for (std::uint32_t p = 0; p < n_panels; ++p)
        for (std::uint32_t s = 0; s < n_steps; s += kGroupSteps)
          widen_group(panels[p], (k + s * kStep) / kGroupValues, w[p] + s);
      // If all of k takes one step, sums are complete after it, and memory for two tiles suffices.
      const auto sums_of = [&](std::uint32_t tile) { return sums + (a.k <= kValues ? 0 : tile); };
      std::uint32_t tile = 0;
      for (; tile + 2 <= rows.count(); tile += 2) multiply_tiles<2>(tile, k, n_steps, w, sums_of(tile));
      if (tile < rows.count()) multiply_tiles<1>(tile, k, n_steps, w, sums_of(tile));
    }
  }
};

template <class Widen>
void run(const cpu::LinearArgs& a, std::uint32_t begin, std::uint32_t end, Widen&& widen_group) {
  const bool is_streamed = streams(a);
  for_sweeps<kSweep, kPanels>(
      a, begin, end, [&](std::uint32_t first, std::uint32_t n, const PanelRows* panels, std::uint32_t n_panels) {
        Block{a, panels, n_panels, first, {n}, is_streamed}.run(widen_group);
      });
  if (is_streamed) _mm_sfence();  // stores past the caches must end before another thread reads y
}

// ---- rows of x ----

void round_bytes(const std::int8_t* from, float d, std::uint32_t n, Bf16* to) {
  for (std::uint32_t i = 0; i < n; i += kStep)
    store(to + i, Ints{round_both(load_i8(from + i) * splat(d), load_i8(from + i + kLanes) * splat(d))});
}

bool has_product_for(DType w) {
  return w == DType::kF16 || w == DType::kBF16 || with_format(w, [](auto) { return true; });
}

bool multiplies_tiles() {
  constexpr Bf16 kOne = 0x3F80, kMinusOne = 0xBF80;
  return multiplies_ones<float>(kOne, kMinusOne, []() ZRT_INLINE_LAMBDA { add_tile_products_bf16<0, 4, 6>(); });
}

}  // namespace

bool has_amx_bf16() {
  return has_avx512_bf16() && __builtin_cpu_supports("avx512vbmi") && has_tiles(TileProducts::kBf16) &&
         survives(multiplies_tiles);
}

bool rounds_x_amx_bf16(DType w, DType x, std::uint32_t n) {
  if (x == DType::kF32) return rounds_x_avx512_bf16(w, x, n);
  return n >= kFewestRows && has_product_for(w);
}

void round_x_amx_bf16(const void* x, DType x_dtype, void* y, std::uint32_t k) {
  auto* to = static_cast<Bf16*>(y);
  if (x_dtype == DType::kF32) return round_x_avx512_bf16(x, x_dtype, y, k);
  if (x_dtype == DType::kQ8A32)
    for (const auto* block = static_cast<const ActBlockQ8A32*>(x); k > 0; k -= 32, to += 32, ++block)
      round_bytes(block->qs, block->d, 32, to);
  else
    for (const auto* block = static_cast<const ActBlockQ8A256*>(x); k > 0; k -= 256, to += 256, ++block)
      round_bytes(block->qs, block->d, 256, to);
}

bool linear_rows_amx_bf16(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end) {
  if (args.x_dtype != DType::kBF16) return linear_rows_amx_int8(args, begin, end);
  return with_format(args.w_dtype, [&](auto format) {
    using F = decltype(format);
    Groups groups(args);
    run(args, begin, end, [&](const PanelRows& panel, std::uint32_t g, WeightTile* to) {
      widen<F>(groups.at(panel, g), to);
      groups.ask_for(panel, g + 1);
    });
    return true;
  });
}

void float_linear_amx_bf16(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end) {
  if (args.x_dtype != DType::kBF16 || args.n < kFewestRows) return float_linear_avx512_bf16(args, begin, end);
  cpu::LinearArgs plain = args;
  plain.packed = false;
  const auto widen_group = plain.w_dtype == DType::kF16 ? widen_rows<true> : widen_rows<false>;
  run(plain, begin, end,
      [&](const PanelRows& panel, std::uint32_t g, WeightTile* to) { widen_group(plain, panel, g, to); });
}

}  // namespace zinc_rt::cpu_simd
