// Computes GATHER_ROWS: y[r] = x[rows[r]]; a row outside x gives NaN (defined by kernels/cpu/gather_rows.cpp). Each
// workgroup copies one row.
#include "kernels/rdna/device.h"

ZRT_KERNEL(gather_rows, 256) {
  using namespace zinc_rt;
  using Operand = operand::GatherRows;
  const uint32_t d = rdna::dim(args, rdna::symbol::GatherRows::d), n = rdna::dim(args, rdna::symbol::GatherRows::n),
                 r = rdna::group(0);
  const auto row = (uint32_t)rdna::buffer<const int32_t>(args, Operand::rows)[r];
  const float* x = rdna::buffer<const float>(args, Operand::x) + (uint64_t)(row < n ? row : 0) * d;
  float* y = rdna::buffer<float>(args, Operand::y) + (uint64_t)r * d;
  for (uint32_t i = rdna::thread(); i < d; i += 256) y[i] = row < n ? x[i] : rdna::quiet_nan();
}
