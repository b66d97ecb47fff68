// Computes the end of SHARED_EXPERT: hidden = hidden + y, in place, where y is the output of the expert's products
// (defined by kernels/cpu/shared_expert.cpp). If gate_inp is given, y is first multiplied by sigmoid(dot(gate_inp, x)).
// Each workgroup computes one token.
#include "kernels/rdna/norm.h"

ZRT_KERNEL(shared_expert, 256) {
  using namespace zinc_rt;
  using namespace zinc_rt::rdna;
  using Buffer = binding::SharedExpert;
  __shared__ float parts[kMostParts];
  const uint32_t d = dim(args, symbol::Row::width);
  const uint64_t row = (uint64_t)group(0) * d;
  const bool has_gate = args.buffers[Buffer::gate_inp] != 0;
  float factor = 1.0f;
  if (has_gate)
    factor = exact::sigmoid(workgroup_dot<256>(buffer<const float>(args, Buffer::gate_inp),
                                               buffer<const float>(args, Buffer::x) + row, d, parts));
  const float* y = buffer<const float>(args, Buffer::y) + row;
  float* hidden = buffer<float>(args, Buffer::hidden) + row;
  for (uint32_t i = thread(); i < d; i += 256) hidden[i] = hidden[i] + (has_gate ? y[i] * factor : y[i]);
}
