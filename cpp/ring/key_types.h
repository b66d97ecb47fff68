// A kernel table has one entry per type of an op's key operand (ir::OpRule::key_input, kernel/kernel_table.h). The
// function below returns these types for a tier.
// Thread rule: plain functions.
#pragma once

#include <span>
#include <vector>

#include "base/dtype.h"

namespace zinc_rt::ring {

// Returns the key types for which a tier has kernels. Kinds is the tier's enum, with the names kNone, kKv, kQ4K and
// kWeights; the tier handles any further kind itself. `cells` lists the types of KV caches for which the tier has
// kernels.
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
