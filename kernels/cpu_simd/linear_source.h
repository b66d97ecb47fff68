// The input and output of LINEAR's tiles: groups of W, activations, and rows of y. A panel is 16 interleaved rows of W
// (kernels/cpu/quant/panels.h). A plain matrix has its rows one after another, as in the file, and is interleaved when
// it is read. So are formats without panels, which are decoded first (kernels/cpu/quant/decoded.h). Included by
// linear_body.h and linear_amx.cpp after a dots_<isa>.h.
#pragma once

#include "kernels/common/act_q8.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/panels.h"
#include "kernels/cpu/quant/quant.h"
#include "kernels/cpu_simd/panel_formats.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr std::uint32_t kGroupValues = 256;
constexpr std::size_t kLargestGroup = sizeof(BlockFixed16) * cpu::kPanelRows;
static_assert(sizeof(Decoded::Interleaved) <= kLargestGroup);

template <class F>
using ActOf = std::conditional_t<F::kIsK, ActBlockQ8A256, ActBlockQ8A32>;

// Whether signed codes are used as unsigned numbers that are 128 larger, because the dots take only unsigned codes.
template <class F>
constexpr bool kShifted = F::kSigned && !kTakesSignedCodes;
// By how much the numbers that the dots take are larger than the values of the codes.
template <class F>
constexpr int kOffsetOf = kShifted<F> ? 128 : F::kOffset;

// Numbers has what the tiles need of a group of a row of x, besides its values. prepare() computes it:
// - K-quants: the sum of each kSub values, which share a sub-scale; each element holds two sums of 16 bits
// - other formats with minimums: per block of 32, the sum of its values as the bits of a float, for the minimum
// - other formats with an offset: per block of 32, the sum of its values times -kOffsetOf, which removes the offset
// - formats with kHalves: per block of 32, the sums of both halves; each element holds two sums of 16 bits
struct alignas(32) Numbers {
  std::int32_t of[8];
};
template <class F>
ZRT_SIMD std::int32_t number_of(const ActBlockQ8A32& block) {
  if constexpr (F::kHalves) {
    std::int32_t first = 0;
    for (int i = 0; i < 16; ++i) first += block.qs[i];
    return (first & 0xFFFF) | static_cast<std::int32_t>(static_cast<std::uint32_t>(block.sum - first) << 16);
  }
  return F::kHasMin ? __builtin_bit_cast(std::int32_t, static_cast<float>(block.sum)) : -kOffsetOf<F> * block.sum;
}
template <class F>
ZRT_SIMD void prepare(const ActOf<F>* x, int n_blocks, Numbers& to) {
  if constexpr (F::kIsK && F::kSub == 16)
    std::memcpy(to.of, x->sums, sizeof(to.of));
  else if constexpr (F::kIsK)
    add_neighbours(x->sums, to.of);
  else if constexpr (F::kHasMin || kOffsetOf<F> != 0)
    for (int s = 0; s < n_blocks; ++s) {
      to.of[s] = number_of<F>(x[s]);
      // Keeps the loop scalar. GCC 12 would gather the sums of blocks into a vector by way of memory.
      asm("" : "+m"(to.of[s]));
    }
}

// Adds the bias and stores rows [begin, end) of the panel whose first row is `panel`.
void store_rows(const cpu::LinearArgs& a, std::uint32_t t, std::uint32_t panel, std::uint32_t begin, std::uint32_t end,
                const float* acc) {
  float* y = a.y + t * a.y_pitch + panel;
  if (a.bias == nullptr && end - begin == cpu::kPanelRows) return store(y, load(acc));
  for (std::uint32_t m = begin; m < end; ++m)
    y[m - panel] = a.bias != nullptr ? acc[m - panel] + a.bias[m] : acc[m - panel];
}

// PanelRows names rows [begin, end) of W, which are in the panel that begins with row `first`.
struct PanelRows {
  std::uint32_t first, begin, end;
};

// Groups reads W group by group. Panels are read in place. The groups of a plain matrix are interleaved in a buffer.
struct Groups {
  explicit Groups(const cpu::LinearArgs& args)
      : a(args), w_row(row_bytes(a.w_dtype, a.k)), w_group(row_bytes(a.w_dtype, kGroupValues)) {}
  const cpu::LinearArgs& a;
  const std::uint64_t w_row, w_group;
  alignas(64) std::byte interleaved[kLargestGroup];  // used if W is a plain matrix
  const cpu::QuantFormat& format = *cpu::quant_format(a.w_dtype);

  ZRT_MEMBER Group at(const PanelRows& rows, std::uint32_t g) {
    const std::uint32_t left = (a.k - g * kGroupValues) / 32;
    const int n_blocks = static_cast<int>(left < 8 ? left : 8);
    const auto* w = static_cast<const std::byte*>(a.w) + rows.first * w_row;
    if (a.packed) return {w + g * w_group * cpu::kPanelRows, n_blocks};
    interleave(rows, w + g * w_group, n_blocks);
    return {interleaved, n_blocks};
  }
  // Returns an address to prefetch: that of group g, which may be past the end.
  ZRT_MEMBER const std::byte* address(const PanelRows& rows, std::uint32_t g) const {
    if (!a.packed) return interleaved;
    return static_cast<const std::byte*>(a.w) + rows.first * w_row + g * w_group * cpu::kPanelRows;
  }
  // Prefetches all of group g, which may be past the end.
  ZRT_MEMBER void ask_for(const PanelRows& rows, std::uint32_t g) const {
    if (!a.packed) return;
    const std::byte* at = address(rows, g);
    for (std::uint64_t i = 0; i < w_group * cpu::kPanelRows; i += 64) __builtin_prefetch(at + i);
  }
  void interleave(const PanelRows& rows, const std::byte* w, int n_blocks) {
    const std::byte* from[cpu::kPanelRows] = {};
    for (std::uint32_t r = rows.first; r < rows.end; ++r) from[r - rows.first] = w + (r - rows.first) * w_row;
    if (format.decode != nullptr) return decode(from);
    const std::uint32_t values = 32 * static_cast<std::uint32_t>(n_blocks), block = traits(a.w_dtype).block_elems;
    cpu::pack_group(a.w_dtype, from, block == kGroupValues ? 1 : values / block, interleaved);
  }
  // Decodes one block of each row. If rows are missing, the last ones are null and give zeros.
  void decode(const std::byte* const* from) {
    auto& to = *reinterpret_cast<Decoded::Interleaved*>(interleaved);
    if (from[cpu::kPanelRows - 1] == nullptr) std::memset(interleaved, 0, sizeof(to));
    cpu::DecodedBlock block;
    for (std::uint32_t r = 0; r < cpu::kPanelRows && from[r] != nullptr; ++r) {
      format.decode(from[r], block);
      to.ds[r] = block.d;
      for (int j = 0; j < 16; ++j) to.scales[j][r] = block.scales[j];
      for (int i = 0; i < 64; ++i) std::memcpy(&to.words[i][r], block.codes + 4 * i, 4);
    }
  }
};

// Calls fn(panels, n) for the panels that contain rows [begin, end), at most kMost at a time.
template <std::uint32_t kMost, class Fn>
void for_panels(const cpu::LinearArgs& a, std::uint32_t begin, std::uint32_t end, Fn&& fn) {
  for (std::uint32_t m = begin; m < end;) {
    PanelRows panels[kMost] = {};
    std::uint32_t n = 0;
    for (; n < kMost && m < end; ++n) {
      const std::uint32_t panel = a.packed ? m / cpu::kPanelRows * cpu::kPanelRows : m;
      const std::uint32_t stop = end - panel < cpu::kPanelRows ? end : panel + cpu::kPanelRows;
      panels[n] = {panel, m, stop};
      m = stop;
    }
    fn(panels, n);
  }
}

// Calls fn(F()) with the format of this dtype. Returns false if the dtype has none.
template <class Fn>
bool with_format(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kQ4_0: return fn(Q4_0());
    case DType::kQ4_1: return fn(Q4_1());
    case DType::kQ5_0: return fn(Q5_0());
    case DType::kQ5_1: return fn(Q5_1());
    case DType::kQ8_0: return fn(Q8_0());
    case DType::kIQ4_NL: return fn(Iq4Nl());
    case DType::kMXFP4: return fn(Mxfp4());
    case DType::kQ2_K: return fn(Q2K());
    case DType::kQ3_K: return fn(Q3K());
    case DType::kQ4_K: return fn(Q4K());
    case DType::kQ5_K: return fn(Q5K());
    case DType::kQ6_K: return fn(Q6K());
    case DType::kIQ4_XS: return fn(Iq4Xs());
    case DType::kNVFP4: return fn(Nvfp4());
    default: return cpu::quant_format(dtype)->decode != nullptr && fn(Decoded());
  }
}

}  // namespace
}  // namespace zinc_rt::cpu_simd
