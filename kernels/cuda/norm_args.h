// The arguments and the shared memory of LAYER_NORM (layer_norm.cu) and SSM_GATED_NORM (ssm_gated_norm.cu). Only the
// planner and these kernels need them.
#pragma once

#include "kernels/cuda/op_args.h"

namespace zinc_rt::cuda {

// Values of a row that LAYER_NORM has in shared memory at once. A multiple of 16, because 16 lanes sum them.
constexpr uint32_t kLayerNormPiece = 4096;

namespace symbol {
ZRT_NAMES(GatedNorm, rows, d, w_groups)
}  // namespace symbol

}  // namespace zinc_rt::cuda
