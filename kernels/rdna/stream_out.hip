// Computes STREAM_OUT: appends an entry (sequence number, slot, token, row) to the host's ring for each output row.
// Entry 0 of the ring is the number of entries written so far (defined by kernels/cpu/stream_out.cpp). There is one
// workgroup, a single wave; lane i writes the rows i, i + 32, ...
#include "kernels/rdna/device.h"

ZRT_KERNEL(stream_out, 32) {
  using namespace zinc_rt;
  using Operand = operand::StreamOut;
  const uint32_t n = rdna::dim(args, rdna::symbol::StreamOut::n),
                 entries = rdna::dim(args, rdna::symbol::StreamOut::entries);
  uint32_t* ring = rdna::buffer<uint32_t>(args, Operand::ring);
  const uint32_t count = ring[0];
  for (uint32_t r = rdna::thread(); r < n; r += 32) {
    uint32_t* entry = ring + 4 * (uint64_t)(1 + (count + r) % (entries - 1));
    entry[0] = count + r;
    entry[1] = (uint32_t)rdna::buffer<const int32_t>(args, Operand::slot)[r];
    entry[2] = (uint32_t)rdna::buffer<const int32_t>(args, Operand::token)[r];
    entry[3] = r;
  }
  if (rdna::thread() == 0) ring[0] = count + n;
}
