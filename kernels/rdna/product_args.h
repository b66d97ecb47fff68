// The arguments of a product y = x W^T of up to three matrices of one type side by side (q, k and v), or of the experts
// that rows have chosen. POD, shared by host and device.
#pragma once

#include "kernels/rdna/op_args.h"

namespace zinc_rt::rdna {

struct ProductPart {
  uint64_t w, bias, y;        // bias 0: none
  uint64_t expert_bytes;      // from an expert's matrix to the next
  uint32_t rows, first_tile;  // of W; of the grid's first axis
};
struct ProductArgs {
  ProductPart parts[3];
  uint64_t x, residual;  // residual not 0: residual += y
  // Experts: ids [n, choices]. Columns are choices; with items these by expert: items [0] is their number, then each has
  // (expert, first, count) of order.
  uint64_t ids, items, order;
  uint32_t k, n;     // n: columns, rows of x without experts
  uint32_t choices;  // of a token; 0: no experts
  uint32_t x_rows;   // rows of x of a token: 1 or `choices`
  uint32_t n_experts, n_parts;
  uint32_t pad[2];
};
static_assert(sizeof(ProductArgs) == sizeof(OpArgs), "the arguments of all kernels take as much");

// A product of few columns (product.h): threads of a workgroup, and its rows of W, of which each has some lanes.
constexpr uint32_t kFewThreads = 128;
constexpr uint32_t few_rows(uint32_t lanes) {
  return kFewThreads / lanes;
}
// By WMMA (product_tile.h): tiles of 16 columns, threads of a workgroup, whose waves have 16 rows of W each.
struct TileShape {
  uint32_t tiles, threads;
  constexpr uint32_t rows() const { return threads / 2; }
  constexpr uint32_t columns() const { return tiles * 16; }
};
constexpr TileShape kSmallTile{1, 128}, kLargeTile{4, 256};

}  // namespace zinc_rt::rdna
