// The arguments of a product y = x W^T of up to three matrices of one type side by side (q, k and v), or of the experts
// that rows have chosen. POD, shared by host and device.
#pragma once

#include "kernels/rdna/op_args.h"

namespace zinc_rt::rdna {

constexpr uint32_t kMostMatrices = 3;
// Addresses come first and numbers behind them, as in OpArgs: logs of packets tell them apart by their place.
struct ProductArgs {
  uint64_t w[kMostMatrices], bias[kMostMatrices], y[kMostMatrices];  // bias 0: none
  uint64_t x, residual;                                              // residual not 0: residual += y
  // Experts: ids [n, choices]. Columns are choices; with items these by expert: items [0] is their number, then each has
  // (expert, first, count) of order.
  uint64_t ids, items, order;
  uint64_t no_scratch;                                      // 0
  uint64_t expert_bytes[kMostMatrices];                     // from an expert's matrix to the next
  uint32_t rows[kMostMatrices], first_tile[kMostMatrices];  // of W; of the grid's first axis
  uint32_t k, n;                                            // n: columns, rows of x without experts
  uint32_t choices;                                         // of a token; 0: no experts
  uint32_t x_rows;                                          // rows of x of a token: 1 or `choices`
  uint32_t n_experts, n_parts;
};
static_assert(__builtin_offsetof(ProductArgs, no_scratch) == __builtin_offsetof(OpArgs, scratch));
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
