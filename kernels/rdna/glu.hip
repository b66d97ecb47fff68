// Computes GLU and MOE_SWIGLU: y = act(gate) * up, where act is silu or gelu in its tanh form, or y = swiglu_oai(gate,
// up) (defined by kernels/cpu/glu.cpp). Each workgroup computes one row: thread i computes the elements i, i + 256, ...
#include "kernels/rdna/device.h"

namespace zinc_rt::rdna {

static_assert(operand::is_same_place(operand::Glu::y, operand::MoeSwiglu::y) &&
              sizeof(push::Glu) == sizeof(push::MoeSwiglu));

ZRT_DEVICE void glu_row(const OpArgs& args) {
  using Operand = operand::Glu;
  const uint32_t f = dim(args, symbol::Row::width);
  const uint32_t act = constants<push::Glu>(args).act;
  const uint64_t row = (uint64_t)group(0) * f;
  const float *gate = buffer<const float>(args, Operand::gate) + row,
              *up = buffer<const float>(args, Operand::up) + row;
  float* y = buffer<float>(args, Operand::y) + row;
  for (uint32_t i = thread(); i < f; i += 256) y[i] = glu(act, gate[i], up[i]);
}

}  // namespace zinc_rt::rdna

ZRT_KERNEL(glu, 256) {
  zinc_rt::rdna::glu_row(args);
}
ZRT_KERNEL(moe_swiglu, 256) {
  zinc_rt::rdna::glu_row(args);
}
