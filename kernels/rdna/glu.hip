// GLU: y = act(gate) * up (kernels/cpu/glu.cpp).
#include "kernels/rdna/device.h"

ZRT_KERNEL(glu, 256) {
  using namespace zinc_rt;
  using Operand = operand::Glu;
  const uint32_t f = rdna::dim(args, 0);
  const bool is_gelu = rdna::constants<push::Glu>(args).act == push::kGeluTanh;
  const uint64_t row = (uint64_t)rdna::group(0) * f;
  const float *gate = rdna::buffer<const float>(args, Operand::gate) + row,
              *up = rdna::buffer<const float>(args, Operand::up) + row;
  float* y = rdna::buffer<float>(args, Operand::y) + row;
  for (uint32_t i = rdna::thread(); i < f; i += 256)
    y[i] = (is_gelu ? exact::gelu_tanh(gate[i]) : exact::silu(gate[i])) * up[i];
}
