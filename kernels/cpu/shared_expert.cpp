// This is the CPU reference kernel of the op SHARED_EXPERT. It computes the expert that every token uses: y =
// LINEAR(GLU(LINEAR(x, gate_w), LINEAR(x, up_w)), down_w). If gate_inp is present, y = y * sigmoid(dot(gate_inp, x)).
// Then hidden = hidden + y, in place. If quantize is 1, x and the product of the GLU are quantized to the type that
// each weight's format needs.
// Shapes: x [n, d], gate_w, up_w [f, d], down_w [d, f], gate_inp [d] or absent, hidden [n, d].
// Order of sums: that of the single ops; the dot with gate_inp is the float dot.
#include <algorithm>

#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/quant.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::SharedExpert;
constexpr NameList kSymbols{"dim:d", "dim:f", "dtype:gate_w", "dtype:up_w", "dtype:down_w"};

void run(const CpuArgs& args) {
  const auto& c = args.constants<push::SharedExpert>();
  const std::uint32_t d = args.dim(kSymbols["dim:d"]), f = args.dim(kSymbols["dim:f"]), t = args.wg[0];
  const std::uint32_t wide = std::max(d, f);
  float *scratch = reinterpret_cast<float*>(args.lds), *gate = scratch + wide, *up = gate + f, *y = up + f;
  auto* quantized = reinterpret_cast<std::byte*>(y + d);
  const float* x = args.buffer<const float>(Operand::x) + std::uint64_t{t} * d;
  const auto project = [&](const float* in, std::uint32_t k, std::size_t w, std::size_t dtype, std::uint32_t rows,
                           float* out) {
    const auto w_dtype = static_cast<DType>(args.symbols[dtype]);
    const DType x_dtype = c.quantize != 0 ? act_dtype(w_dtype) : DType::kF32;
    if (x_dtype != DType::kF32) quantize_row(in, quantized, k, x_dtype, args.set);
    linear_rows({args.buffers[w], w_dtype, args.is_packed(w), rows, nullptr,
                 x_dtype == DType::kF32 ? static_cast<const void*>(in) : quantized, x_dtype, 0, k, 1, out, rows,
                 scratch, args.set},
                0, rows);
  };
  project(x, d, Operand::gate_w, kSymbols["dtype:gate_w"], f, gate);
  project(x, d, Operand::up_w, kSymbols["dtype:up_w"], f, up);
  glu_row(c.act, gate, up, gate, f, args.set);
  project(gate, f, Operand::down_w, kSymbols["dtype:down_w"], d, y);
  const float* gate_inp = args.buffer<const float>(Operand::gate_inp);
  const float factor = gate_inp != nullptr ? exact::sigmoid(quant_format(DType::kF32)->dot(gate_inp, x, d)) : 1.0f;
  float* hidden = args.buffer<float>(Operand::hidden) + std::uint64_t{t} * d;
  for (std::uint32_t i = 0; i < d; ++i) hidden[i] = hidden[i] + (gate_inp != nullptr ? y[i] * factor : y[i]);
}

}  // namespace

extern const CpuKernel kCpuKernel_shared_expert;
const CpuKernel kCpuKernel_shared_expert{
    "SHARED_EXPERT", run, kSymbols, {{"n"}, {}}, KeyTypes::kWeights, [](const std::uint32_t* s) {
      const std::uint64_t d = s[kSymbols["dim:d"]], f = s[kSymbols["dim:f"]], wide = std::max(d, f);
      return (wide + 2 * f + d) * 4 + wide * 4;
    }};

}  // namespace zinc_rt::cpu
