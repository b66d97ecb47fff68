// quantize computes QUANTIZE, which converts rows of floats to blocks of integers (quantize.h). glu_quantize computes
// GLU and the QUANTIZE of its rows; it also writes the rows of GLU as floats, unless `y` is null.
// Grid: (rows, pieces of 8 blocks of a row). Each of a workgroup's eight waves converts one block.
#include "kernels/rdna/quantize.h"

ZRT_KERNEL(quantize, 256) {
  using namespace zinc_rt;
  using Operand = operand::Quantize;
  using Symbol = rdna::symbol::Quantize;
  const uint32_t k = rdna::dim(args, Symbol::k), t = rdna::group(0);
  const float* x = rdna::buffer<const float>(args, Operand::x) + (uint64_t)t * k;
  rdna::write_quantized([&](uint32_t i) { return x[i]; }, args.symbols[Symbol::dtype_y], args.buffers[Operand::y], t, k,
                        rdna::group(1) * 8 + rdna::thread() / 32, rdna::kOneBlock);
}

ZRT_KERNEL(glu_quantize, 256) {
  using namespace zinc_rt;
  using Buffer = rdna::binding::GluQuantize;
  using Symbol = rdna::symbol::Quantize;
  const uint32_t k = rdna::dim(args, Symbol::k), t = rdna::group(0);
  const uint32_t act = rdna::constants<push::Glu>(args).act;
  const uint64_t row = (uint64_t)t * k;
  const float *gate = rdna::buffer<const float>(args, Buffer::gate) + row,
              *up = rdna::buffer<const float>(args, Buffer::up) + row;
  float* y = rdna::buffer<float>(args, Buffer::y) + row;
  const bool is_wanted = args.buffers[Buffer::y] != 0;
  const auto value = [&](uint32_t i) {  // called once per value, because it also stores it
    const float v = rdna::glu(act, gate[i], up[i]);
    if (is_wanted) y[i] = v;
    return v;
  };
  rdna::write_quantized(value, args.symbols[Symbol::dtype_y], args.buffers[Buffer::quantized], t, k,
                        rdna::group(1) * 8 + rdna::thread() / 32, rdna::kOneBlock);
}
