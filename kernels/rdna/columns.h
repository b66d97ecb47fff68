// Tells a workgroup of a product y = x W^T which rows of W, x and y it computes. product_args.h explains columns,
// parts, choices and items.
#pragma once

#include "kernels/rdna/device.h"
#include "kernels/rdna/product_args.h"

namespace zinc_rt::rdna {

// The columns that a workgroup computes together. All of them are multiplied by the same matrix. y_row(c) and x_row(c)
// return the row of y and of x that belong to the workgroup's c-th column.
struct Columns {
  uint32_t first, n;     // n: 0 if this workgroup has nothing to do
  uint64_t expert;       // the expert whose matrix is used; 0 without experts
  const int32_t* order;  // choices sorted by expert; null: the columns are first, first + 1, ...
  uint32_t choices, x_rows;

  ZRT_MEMBER uint32_t y_row(uint32_t c) const { return order != nullptr ? (uint32_t)order[first + c] : first + c; }
  ZRT_MEMBER uint32_t x_row(uint32_t c) const {
    const uint32_t row = y_row(c);
    return choices == 0 || x_rows != 1 ? row : row / choices;
  }
};

// Returns the columns of pass `pass`, which is a place on the grid's second axis. A pass is an item if the choices are
// sorted by expert, else one choice if there are experts, else up to kMost rows of x.
template <uint32_t kMost>
ZRT_DEVICE Columns columns_of(const ProductArgs& args, uint32_t pass) {
  Columns columns{pass * kMost, 0, 0, nullptr, args.choices, args.x_rows};
  if (args.items != 0) {
    const int32_t* items = at_address<const int32_t>(args.items);
    if (pass >= (uint32_t)items[0]) return columns;
    const int32_t* item = items + 1 + 3 * pass;
    columns.expert = (uint32_t)item[0];
    columns.first = (uint32_t)item[1];
    columns.n = (uint32_t)item[2];
    columns.order = at_address<const int32_t>(args.order);
  } else if (args.choices != 0) {
    columns.first = pass;
    columns.n = pass < args.n ? 1 : 0;
    columns.expert = columns.n == 0 ? 0 : (uint32_t)at_address<const int32_t>(args.ids)[pass];
  } else {
    columns.n = columns.first >= args.n ? 0 : args.n - columns.first < kMost ? args.n - columns.first : kMost;
  }
  return columns;
}

// One part of a product: a matrix with its bias, result and place on the grid. part_of() returns the part to which tile
// `tile` of the grid's first axis belongs.
struct ProductPart {
  uint64_t w, bias, y, expert_bytes;
  uint32_t rows, first_tile;
};
ZRT_DEVICE ProductPart part_of(const ProductArgs& args, uint32_t tile) {
  uint32_t p = 0;
  while (p + 1 < args.n_parts && tile >= args.first_tile[p + 1]) ++p;
  return {args.w[p], args.bias[p], args.y[p], args.expert_bytes[p], args.rows[p], args.first_tile[p]};
}

// Stores a finished sum: adds the bias of its row of W, writes it to y, and adds it to the residual matrix in place if
// the product has one.
ZRT_DEVICE void put(const ProductArgs& args, const ProductPart& part, uint32_t row, uint32_t y_row, float sum) {
  if (part.bias != 0) sum = sum + at_address<const float>(part.bias)[row];
  const uint64_t at = (uint64_t)y_row * part.rows + row;
  at_address<float>(part.y)[at] = sum;
  if (args.residual == 0) return;
  float& residual = at_address<float>(args.residual)[at];
  residual = residual + sum;
}

}  // namespace zinc_rt::rdna
