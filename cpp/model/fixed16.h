// Converts F16 and BF16 weights to integers (BlockFixed16 of kernels/common/quant_blocks.h), with which executors
// compute in arithmetic `exact` (docs/arithmetic.md, rule 4). Each group of 256 weights of a row has one power of two,
// the largest that keeps every code within 32,639: code = weight * 2^s, rounded to the nearest, ties to even. A group
// with a weight that is not finite has the scale NaN.
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace zinc_rt {

struct Tensor;

// Whether executors compute with this matrix as fixed16. The matrix must be F16 or BF16 in rows of whole groups, and at
// least nine tenths of the weights must keep their value, counted on 32 rows spread over the matrix. The answer depends
// only on the file.
bool fits_fixed16(const Tensor& tensor);

// Converts k weights of type `from` (kF16 or kBF16) to k / 256 blocks; k is a multiple of 256. Returns how many weights
// kept their value.
std::uint64_t to_fixed16(DType from, const std::byte* weights, std::uint64_t k, std::byte* blocks);

// How many threads convert a model's weights (Weights::copy_rows): one per processor, at most 16.
unsigned conversion_threads();

}  // namespace zinc_rt
