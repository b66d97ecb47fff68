// Chooses the kernel of a matrix product and its shape by the types of the weights and of x, and by the number of rows.
// Thread rule: plain functions.
#pragma once

#include "ring/cuda/plan/plan.h"

namespace zinc_rt::ring {

// The kernel that multiplies by matrices of a type, and the numbers by which it is launched.
struct Shape {
  const char *image, *function;  // image: the part of its name before the weights' type
  std::uint32_t columns;         // rows of x per workgroup
  std::uint32_t block_rows;      // rows of W per workgroup
  std::uint32_t shared;
  std::uint32_t threads = 256;
  std::uint32_t walkers = 0;         // if not 0, a launch has this many workgroups, which share all blocks and items
  bool walk_over_columns = false;    // the workgroups share the tiles of columns, too
  std::uint32_t sharers = 1;         // float_columns.cuh: warps that share a group of k
  bool starts_next_at_once = false;  // the kernel lets the next launch start before its own inputs are ready
};

// Returns the type to which x is quantized for products with weights of a type, as the enum of the kernels.
inline cuda::ActType act_type(DType weights) {
  return static_cast<cuda::ActType>(act_dtype(weights));
}
// Returns the types of the matrices, each once.
std::vector<DType> types_of(const std::vector<Matrix>& matrices);
// Returns the number of blocks of `block_rows` rows of W that the matrices of a type have together.
std::uint32_t blocks_of(const std::vector<Matrix>& matrices, DType dtype, std::uint32_t block_rows);
// Returns the number of rows of x by which each matrix is multiplied; with experts, the average per expert.
std::uint32_t rows_met(const DeviceProfile& device, const OpCall& call, const Experts& experts);

// Returns the shape of linear.cuh for few rows of x: the smallest kernel that takes `columns` rows at once, or else the
// largest that fits the device. A block is two tiles of W instead of one if n_pairs, the number of pairs of tiles,
// keeps all multiprocessors busy.
Shape few_shape(const DeviceProfile& device, DType dtype, std::uint32_t columns, std::uint64_t n_pairs);
// Returns the shape of linear.cuh for one row of x, if the kernel also computes the GLU. Each block of rows of W is
// then one tile (16 rows) of gate and the same tile of up. If two tiles do not fit the device's shared memory, returns
// a shape of one tile, which cannot compute the GLU (can_glu).
Shape glu_shape(const DeviceProfile& device, DType dtype);
// Returns the shape of linear_fixed_row.cuh, one row of x times matrices of FIXED16. columns is 0 if that kernel cannot
// multiply by these matrices. is_glu: the matrices are gate and up, followed by a GLU.
Shape fixed_row_shape(const DeviceProfile& device, const std::vector<Matrix>& matrices, std::uint32_t k, bool is_glu);
// Returns the shape of the kernel that multiplies `rows` rows of x by matrices of a type, by digits of sub-scales.
// columns 0: there is no such kernel.
Shape digits_shape(const DeviceProfile& device, const std::vector<Matrix>& matrices, DType dtype, std::uint32_t rows);
// Returns how many rows of x are in a tile of the layout that plan_digits() plans for these products.
std::uint32_t digit_columns(const DeviceProfile& device, const std::vector<Matrix>& matrices, std::uint32_t rows);
// Returns the shape for float rows of x, of which each matrix is multiplied by `met` (plan_linear_floats.cpp).
Shape float_shape_for(const DeviceProfile& device, const std::vector<Matrix>& matrices, std::uint32_t k,
                      std::uint32_t met, std::uint32_t n_experts);

// Chooses the kernel for the products of some matrices, for each matrix type. It does not consider norms, grids too
// small for the GPU, and digits in dense products; plan_linear() does.
class Shapes {
 public:
  // REQUIRES: matrices and experts live as long as this.
  Shapes(const DeviceProfile& device, const OpCall& call, DType x_dtype, std::uint32_t k,
         const std::vector<Matrix>& matrices, const Experts& experts);

  bool is_tiled() const { return is_tiled_; }
  bool is_by_digits() const { return is_by_digits_; }  // products by digits, of experts only
  Shape of(DType dtype) const { return of(dtype, tile_); }
  Shape of(DType dtype, const cuda::TileShape& tile) const;
  // Returns how many rows of x a workgroup, or an item of experts, computes.
  std::uint32_t columns() const { return of(matrices_[0].dtype).columns; }

 private:
  bool fits(const cuda::TileShape& tile) const;
  bool has_few_columns() const;
  std::uint64_t n_pairs(DType dtype) const;

  const std::vector<Matrix>& matrices_;
  const Experts& experts_;
  const DeviceProfile& device_;
  std::uint32_t met_, n_choices_;
  bool is_integer_, is_tiled_, is_by_warp_ = false, is_by_digits_ = false;
  const cuda::TileShape& tile_;
  Shape few_floats_;
};

}  // namespace zinc_rt::ring
