// The arguments of the product kernels (product.h, product_tile.h). A product is y = x W^T; a row of x, with the row of
// y that it yields, is a column of the product. W is up to three matrices of one type that are multiplied by the same
// x, such as those of q, k and v; each of them is a part. Or W is the matrices of experts. Then a column is a choice:
// one token's use of one expert. An item is several choices of the same expert, which a workgroup computes together.
// Shared by host and device (POD).
#pragma once

#include "kernels/rdna/op_args.h"

namespace zinc_rt::rdna {

constexpr uint32_t kMostMatrices = 3;
// Addresses come first, and numbers after them, as in OpArgs: logs of packets tell addresses from numbers by their
// place.
struct ProductArgs {
  uint64_t w[kMostMatrices], bias[kMostMatrices], y[kMostMatrices];  // bias: 0 if absent
  uint64_t x, residual;                                              // residual: 0, or y is added to it in place
  // With experts, ids [tokens, choices] are the experts that the tokens chose. items is 0, or lists the choices sorted
  // by expert: items[0] is the number of items, followed by three numbers for each item. These are its expert, its
  // first place in `order`, and its number of choices (kernels/rdna/moe_gate_topk.hip makes them).
  uint64_t ids, items, order;
  uint64_t no_scratch;                                      // always 0; it lies where OpArgs has `scratch`
  uint64_t expert_bytes[kMostMatrices];                     // bytes from an expert's matrix to the next
  uint32_t rows[kMostMatrices], first_tile[kMostMatrices];  // rows of W; the part's place on the grid
  uint32_t k, n;                                            // values of a row of x; columns
  uint32_t choices;                                         // choices of a token; 0: there are no experts
  uint32_t x_rows;                                          // rows of x per token: 1, or one per choice
  uint32_t n_experts, n_parts;
};
static_assert(__builtin_offsetof(ProductArgs, no_scratch) == __builtin_offsetof(OpArgs, scratch));
static_assert(sizeof(ProductArgs) == sizeof(OpArgs), "the arguments of all kernels take as much");

// For product.h: the threads of a workgroup, and its rows of W if each of them has `lanes` lanes.
constexpr uint32_t kFewThreads = 128;
constexpr uint32_t few_rows(uint32_t lanes) {
  return kFewThreads / lanes;
}
// For product_tile.h: `tiles` tiles of 16 columns, and `threads` threads per workgroup. Each wave has 16 rows of W.
struct TileShape {
  uint32_t tiles, threads;
  constexpr uint32_t rows() const { return threads / 2; }
  constexpr uint32_t columns() const { return tiles * 16; }
};
constexpr TileShape kSmallTile{1, 128}, kLargeTile{4, 256};

}  // namespace zinc_rt::rdna
