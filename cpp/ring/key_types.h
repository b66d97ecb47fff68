// For each op, a tier's kernel table (kernel/kernel_table.h) has one entry per type of the op's key operand. (The key
// operand is the operand whose type selects the kernel: ir::OpRule::key_input.) The function below returns these types.
// Thread rule: plain functions.
#pragma once

#include <span>
#include <vector>

#include "base/dtype.h"

namespace zinc_rt::ring {

// Returns the types of a key operand for which a tier has kernels. `kind` tells what the key operand is. Each tier has
// an enum of its own for that, Kinds, with at least these values:
// - kKv: the KV cache; the types are `cells`, the cache types that the tier supports
// - kQ4K: weights that are always Q4_K
// - kWeights: weights; the types are `weights`, the weight types that the tier supports
// - kNone: the op's kernel does not depend on a type; its entry has the key F32
// Any other value gives the same as kNone, so a tier handles its further values itself.
template <class Kinds>
std::vector<DType> key_types(Kinds kind, std::span<const DType> cells, std::span<const DType> weights) {
  switch (kind) {
    case Kinds::kKv: return {cells.begin(), cells.end()};
    case Kinds::kQ4K: return {DType::kQ4_K};
    case Kinds::kWeights: return {weights.begin(), weights.end()};
    default: return {DType::kF32};
  }
}

}  // namespace zinc_rt::ring
