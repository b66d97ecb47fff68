// Shared by the plans of matrix products (plan_linear.cpp, plan_linear_floats.cpp, plan_linear_wgmma.cpp).
#pragma once

#include "ring/cuda/plan/linear_shapes.h"

namespace zinc_rt::ring {

// Returns the arguments of a product, except x, parts and experts.
cuda::LinearArgs linear_args(const Planner& planner, const OpCall& call, std::uint32_t k, Place residual);
// Sets the arguments for an RMS_NORM that the product computes itself.
void set_norm(cuda::LinearArgs& args, const Norm& norm);
// Sets args.parts and args.n_blocks from the matrices of a type, in blocks of block_rows rows.
void set_parts(cuda::LinearArgs& args, const std::vector<Matrix>& matrices, DType dtype, std::uint32_t block_rows);
// Sorts choices by expert into items of up to `columns` choices, unless an earlier packet has done so or there are too
// few tokens. Returns the largest possible number of items.
std::uint32_t plan_experts(Planner& planner, const OpCall& call, const Experts& experts, std::uint32_t columns,
                           cuda::LinearArgs& args);

// Plans products of arithmetic `fast` (linear_wgmma.cuh). Returns false and plans nothing if arithmetic `fast` is off,
// or if these kernels would not be faster or do not support the matrices.
bool plan_linear_wgmma(Planner& planner, const OpCall& call, const Products& products, Place residual);

}  // namespace zinc_rt::ring
