// The arguments and the shape of the workgroups of SSM_SCAN (ssm_scan.cu). Only the planner and that kernel need them.
#pragma once

#include "kernels/cuda/op_args.h"

namespace zinc_rt::cuda {

// Columns of a head's state that a workgroup computes: one per lane of each warp.
constexpr uint32_t kScanColumns = 32;
// Rows of the state that a warp keeps, and the most warps that share the rows of a column.
constexpr uint32_t kScanRows = 32, kMostScanWarps = 16;
// Tokens that a warp applies before it passes its sums on.
constexpr uint32_t kScanTokens = 8;

// What a warp has read of its tokens: its rows of B and C, and its columns of x.
struct ScanTokens {
  float b[kScanTokens][kScanRows], c[kScanTokens][kScanRows], x[kScanTokens][kScanColumns];
};
// What a warp passes to the one with the next rows: the sums so far, and softplus(dt + dt_bias) and the decay, which the
// first warp computes.
struct ScanSums {
  float y[kScanTokens][kScanColumns], dt[kScanTokens], decay[kScanTokens];
};
// Returns the bytes of shared memory of a workgroup of `warps` warps.
constexpr uint32_t scan_shared_bytes(uint32_t warps) {
  return warps * static_cast<uint32_t>(sizeof(ScanTokens) + 2 * sizeof(ScanSums));
}

namespace symbol {
ZRT_NAMES(SsmScan, rows, k)
}  // namespace symbol

}  // namespace zinc_rt::cuda
