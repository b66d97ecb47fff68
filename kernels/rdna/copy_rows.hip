// Computes COPY_ROWS: rows[to[i]] = rows[from[i]] for each pair i (defined by kernels/cpu/copy_rows.cpp). Each
// workgroup copies one row. It copies 32-bit words and interprets no values, because a row may be of any type.
#include "kernels/rdna/device.h"

ZRT_KERNEL(copy_rows, 256) {
  using namespace zinc_rt;
  using Operand = operand::CopyRows;
  const uint64_t w = rdna::dim(args, rdna::symbol::Row::width);
  const uint32_t i = rdna::group(0);
  uint32_t* rows = rdna::buffer<uint32_t>(args, Operand::rows);
  const uint32_t* from = rows + (uint64_t)(uint32_t)rdna::buffer<const int32_t>(args, Operand::from)[i] * w;
  uint32_t* to = rows + (uint64_t)(uint32_t)rdna::buffer<const int32_t>(args, Operand::to)[i] * w;
  for (uint64_t at = rdna::thread(); at < w; at += 256) to[at] = from[at];
}
