#include "kernels/cpu/quant/panels.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/quant/quant.h"

namespace zinc_rt::cpu {
namespace {

// kGroup is the number of values in a group. kLargestGroupRow is the most bytes that one row of a group takes, in any
// format (FIXED16 takes most).
constexpr std::uint32_t kGroup = 256, kLargestGroupRow = 514;

// The fields of each format's block, in the order in which a panel stores them. Scales come before codes, so that codes
// are aligned to whole vectors.
constexpr PanelField kQ4_0[] = {{0, 2, 1}, {2, 4, 4}};
constexpr PanelField kQ4_1[] = {{0, 2, 1}, {2, 2, 1}, {4, 4, 4}};
constexpr PanelField kQ5_0[] = {{0, 2, 1}, {2, 4, 1}, {6, 4, 4}};
constexpr PanelField kQ5_1[] = {{0, 2, 1}, {2, 2, 1}, {4, 4, 1}, {8, 4, 4}};
constexpr PanelField kQ8_0[] = {{0, 2, 1}, {2, 4, 8}};
constexpr PanelField kMXFP4[] = {{0, 1, 1}, {1, 4, 4}};
constexpr PanelField kNVFP4[] = {{0, 4, 1}, {4, 4, 8}};
constexpr PanelField kQ2_K[] = {{80, 2, 1}, {82, 2, 1}, {0, 4, 4}, {16, 4, 16}};
constexpr PanelField kQ3_K[] = {{108, 2, 1}, {96, 4, 3}, {0, 4, 8}, {32, 4, 16}};
constexpr PanelField kQ4_K[] = {{0, 2, 1}, {2, 2, 1}, {4, 4, 3}, {16, 4, 32}};
constexpr PanelField kQ5_K[] = {{0, 2, 1}, {2, 2, 1}, {4, 4, 3}, {16, 4, 8}, {48, 4, 32}};
constexpr PanelField kQ6_K[] = {{208, 2, 1}, {192, 4, 4}, {128, 4, 16}, {0, 4, 32}};
constexpr PanelField kFixed16[] = {{512, 2, 1}, {0, 4, 64}, {256, 4, 64}};
constexpr PanelField kIQ4_XS[] = {{0, 2, 1}, {2, 2, 1}, {4, 4, 1}, {8, 4, 32}};

template <class Word>
void interleave(const std::byte* const* rows, std::uint32_t offset, std::uint32_t count, std::byte* to) {
  for (std::uint32_t i = 0; i < count; ++i)
    for (std::uint32_t r = 0; r < kPanelRows; ++r, to += sizeof(Word)) {
      Word word = 0;
      if (rows[r] != nullptr) std::memcpy(&word, rows[r] + offset + i * sizeof(Word), sizeof(Word));
      std::memcpy(to, &word, sizeof(Word));
    }
}

}  // namespace

std::span<const PanelField> panel_fields(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
    case DType::kIQ4_NL: return kQ4_0;
    case DType::kQ4_1: return kQ4_1;
    case DType::kQ5_0: return kQ5_0;
    case DType::kQ5_1: return kQ5_1;
    case DType::kQ8_0: return kQ8_0;
    case DType::kMXFP4: return kMXFP4;
    case DType::kNVFP4: return kNVFP4;
    case DType::kQ2_K: return kQ2_K;
    case DType::kQ3_K: return kQ3_K;
    case DType::kQ4_K: return kQ4_K;
    case DType::kQ5_K: return kQ5_K;
    case DType::kQ6_K: return kQ6_K;
    case DType::kIQ4_XS: return kIQ4_XS;
    case DType::kFixed16: return kFixed16;
    default: return {};
  }
}

void pack_group(DType dtype, const std::byte* const* rows, std::uint32_t n_blocks, std::byte* to) {
  const std::uint32_t block_bytes = traits(dtype).block_bytes;
  for (const PanelField& field : panel_fields(dtype))
    for (std::uint32_t b = 0; b < n_blocks; ++b) {
      const std::uint32_t at = b * block_bytes + field.offset;
      switch (field.bytes) {
        case 1: interleave<std::uint8_t>(rows, at, field.count, to); break;
        case 2: interleave<std::uint16_t>(rows, at, field.count, to); break;
        default: interleave<std::uint32_t>(rows, at, field.count, to); break;
      }
      to += std::size_t{kPanelRows} * field.bytes * field.count;
    }
}

void pack_matrix(DType dtype, std::uint32_t rows, std::uint32_t k, const std::byte* from, std::byte* to) {
  const std::uint64_t row = row_bytes(dtype, k);
  if (!has_panels(dtype)) {
    std::memcpy(to, from, rows * row);
    return;
  }
  const std::uint32_t block_elems = traits(dtype).block_elems, block_bytes = traits(dtype).block_bytes;
  const std::uint32_t n_blocks = k / block_elems, in_group = kGroup / block_elems;
  for (std::uint32_t first = 0; first < rows_in_panels(rows); first += kPanelRows)
    for (std::uint32_t b = 0; b < n_blocks; b += in_group) {
      const std::byte* at[kPanelRows];
      for (std::uint32_t r = 0; r < kPanelRows; ++r) at[r] = from + (first + r) * row + std::uint64_t{b} * block_bytes;
      pack_group(dtype, at, std::min(in_group, n_blocks - b),
                 to + first * row + std::uint64_t{b} * block_bytes * kPanelRows);
    }
  const std::uint64_t done = rows_in_panels(rows) * row;
  std::memcpy(to + done, from + done, rows * row - done);
}

void dequantize_packed_row(DType dtype, std::uint32_t rows, std::uint32_t k, const std::byte* matrix, std::uint32_t row,
                           float* to) {
  const QuantFormat& format = *quant_format(dtype);
  const std::uint64_t bytes = row_bytes(dtype, k);
  if (!has_panels(dtype) || row >= rows_in_panels(rows)) return format.dequantize_row(matrix + row * bytes, to, k);
  const std::uint32_t block_elems = traits(dtype).block_elems, block_bytes = traits(dtype).block_bytes;
  const std::uint32_t n_blocks = k / block_elems, in_group = kGroup / block_elems, lane = row % kPanelRows;
  const std::byte* from = matrix + (row - lane) * bytes;
  for (std::uint32_t b = 0; b < n_blocks; b += in_group) {
    const std::uint32_t n = std::min(in_group, n_blocks - b);
    alignas(16) std::byte group[kLargestGroupRow];
    for (const PanelField& field : panel_fields(dtype))
      for (std::uint32_t i = 0; i < n * field.count; ++i, from += std::size_t{kPanelRows} * field.bytes)
        std::memcpy(group + i / field.count * block_bytes + field.offset + i % field.count * field.bytes,
                    from + lane * field.bytes, field.bytes);
    format.dequantize_row(group, to + std::uint64_t{b} * block_elems, std::int64_t{n} * block_elems);
  }
}

}  // namespace zinc_rt::cpu
