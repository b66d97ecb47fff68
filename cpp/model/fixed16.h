// Converts F16 and BF16 weights to 16-bit integers (BlockFixed16 of kernels/common/quant_blocks.h). Executors compute
// with them in arithmetic `exact` (docs/arithmetic.md, rule 4), because sums of integers do not depend on their order.
// Each group of 256 weights of a row shares one power of two 2^s, the largest that keeps every code within 32,639. A
// code is weight * 2^s, rounded to the nearest integer, ties to even. A group with a weight that is not finite gets the
// scale NaN.
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace zinc_rt {

struct Tensor;

// Returns whether executors convert this matrix to fixed16. The matrix must be F16 or BF16, and its rows must consist
// of whole groups. The conversion must not change the values of at least nine tenths of the weights in a sample of 32
// rows, spread over the matrix. The answer depends only on the file.
bool fits_fixed16(const Tensor& tensor);

// Converts k weights of type `from` (kF16 or kBF16) to k / 256 blocks. k is a multiple of 256. Returns how many weights
// were converted without any rounding.
std::uint64_t to_fixed16(DType from, const std::byte* weights, std::uint64_t k, std::byte* blocks);

// Returns how many threads Weights::copy_rows should use to convert a model's weights: one per processor, at most 16.
unsigned conversion_threads();

}  // namespace zinc_rt
