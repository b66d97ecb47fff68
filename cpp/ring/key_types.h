// Lists the types of an op's key operand (ir::OpRule::key_input) that a tier has kernels for. A kernel table has an
// entry for each (kernel/kernel_table.h).
// Thread rule: plain functions.
#pragma once

#include <span>
#include <vector>

#include "base/dtype.h"

namespace zinc_rt::ring {

// Kinds: a tier's enum with the names kNone, kKv, kQ4K and kWeights. The tier handles any further kind itself. cells:
// the key types of KV caches that the tier has kernels for.
template <class Kinds>
std::vector<DType> key_types(Kinds kind, std::span<const DType> cells) {
  switch (kind) {
    case Kinds::kKv: return {cells.begin(), cells.end()};
    case Kinds::kQ4K: return {DType::kQ4_K};
    case Kinds::kWeights: return weight_types();
    default: return {DType::kF32};
  }
}

}  // namespace zinc_rt::ring
