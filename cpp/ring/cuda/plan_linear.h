// What the plans of matrix products share, whichever kernels they choose (plan_linear.cpp, plan_linear_floats.cpp,
// plan_linear_wgmma.cpp).
#pragma once

#include "ring/cuda/plan.h"

namespace zinc_rt::ring {

// A kernel of products, and how it is launched.
struct Shape {
  const char *image, *function;  // image: of those with the weights' type in their name
  std::uint32_t columns;         // rows of x a workgroup
  std::uint32_t block_rows;      // rows of W a workgroup
  std::uint32_t shared;
  std::uint32_t threads = 256;
  std::uint32_t walkers = 0;       // so many workgroups share all blocks and items; 0: a workgroup each
  bool walk_over_columns = false;  // they share tiles of columns too
  std::uint32_t sharers = 1;       // float_columns.cuh: warps that share a group
};

// Without x, parts and experts.
cuda::LinearArgs linear_args(const Planner& planner, const OpCall& call, std::uint32_t k, float* residual);
void set_norm(cuda::LinearArgs& args, const Norm& norm);
// Rows of x that meet a matrix, of an expert on the average.
std::uint32_t rows_met(const OpCall& call, const Experts& experts);
// The types of the matrices, each once.
std::vector<DType> types_of(const std::vector<Matrix>& matrices);
// Of so many rows of W, of the matrices of a type.
std::uint32_t blocks_of(const std::vector<Matrix>& matrices, DType dtype, std::uint32_t block_rows);
// The matrices of a type, in blocks of rows.
void set_parts(cuda::LinearArgs& args, const std::vector<Matrix>& matrices, DType dtype, std::uint32_t block_rows);
// Sorts choices by expert in items of up to `columns` choices, where tokens are not too few for it and no packet before
// has left them so; the most items that there can be.
std::uint32_t plan_experts(Planner& planner, const OpCall& call, const Experts& experts, std::uint32_t columns,
                           cuda::LinearArgs& args);

// The kernel of float rows of x, `met` of them by a matrix (plan_linear_floats.cpp).
Shape float_shape_for(const std::vector<Matrix>& matrices, std::uint32_t k, std::uint32_t met, std::uint32_t n_experts,
                      std::uint32_t most_shared);

// The products of arithmetic `fast` (linear_wgmma.cuh). False, and nothing is planned, where they are not allowed, not
// faster, or cannot be.
bool plan_linear_wgmma(Planner& planner, const OpCall& call, const void* x, DType x_dtype, std::uint32_t k,
                       const std::vector<Matrix>& matrices, const Experts& experts, float* residual);

}  // namespace zinc_rt::ring
