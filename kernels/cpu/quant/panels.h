// Row panels are the form in which the fast kernel sets read quantized weights. 16 rows of a matrix are interleaved, so
// that a vector of 16 lanes holds one 32-bit word of each row (lane = row) and no sum crosses lanes. Bytes are
// permuted, never changed. So a matrix takes as many bytes as in its file, and panel p begins at the offset at which
// row 16 p begins in the file.
//
// A panel consists of its groups of 256 values in order; the last group may be shorter. A group is stored field by
// field (the fields of the format's block are listed below). For each field the order is: block, element of the field,
// row. Rows after the last full panel follow the panels and are stored as in the file.
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace zinc_rt::cpu {

constexpr std::uint32_t kPanelRows = 16;

struct PanelField {
  std::uint16_t offset;  // where the field begins in the block, in bytes
  std::uint8_t bytes;    // bytes per element of the field: 1, 2 or 4
  std::uint8_t count;    // number of elements of the field
};

// Returns the fields of a format's block, in the order in which a panel stores them. Returns an empty list for a format
// without panels.
std::span<const PanelField> panel_fields(DType dtype);
inline bool has_panels(DType dtype) {
  return !panel_fields(dtype).empty();
}

// Returns how many rows of a matrix with `rows` rows are in panels.
constexpr std::uint32_t rows_in_panels(std::uint32_t rows) {
  return rows / kPanelRows * kPanelRows;
}

// Interleaves one group, with n_blocks blocks per row. rows[r] points to the first block of row r; null stands for a
// row of zeros.
void pack_group(DType dtype, const std::byte* const* rows, std::uint32_t n_blocks, std::byte* to);
// Interleaves a matrix [rows, k] that is in the layout of a file; copies it if the format has no panels. `to` has as
// many bytes and does not overlap it.
void pack_matrix(DType dtype, std::uint32_t rows, std::uint32_t k, const std::byte* from, std::byte* to);
// Converts one row of a packed matrix to floats.
void dequantize_packed_row(DType dtype, std::uint32_t rows, std::uint32_t k, const std::byte* matrix, std::uint32_t row,
                           float* to);

}  // namespace zinc_rt::cpu
