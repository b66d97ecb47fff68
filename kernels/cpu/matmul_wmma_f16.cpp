// This is the CPU reference kernel of the op MATMUL_WMMA_F16. It computes c = a b^T for 16-bit floats, the form of
// LINEAR for matrix units. A matrix unit has its own order of sums, so a tier offers this op only in arithmetic `fast`.
// The tolerance of such tiers is measured against this reference.
// Shapes: a [n, k] f16, b [m, k] f16 or bf16, c [n, m] f32.
// Order of sums: the float dot of rule 4 over the values converted to float.
#include <algorithm>

#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/quant.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::MatmulWmmaF16;
constexpr NameList kSymbols{"dim:k", "dim:m", "dtype:b"};

constexpr std::uint32_t kTile = 64;

void run(const CpuArgs& args) {
  const std::uint32_t k = args.dim(kSymbols["dim:k"]), m = args.dim(kSymbols["dim:m"]), t = args.wg[0];
  auto* scratch = reinterpret_cast<float*>(args.lds);
  float* a = scratch + k;
  quant_format(DType::kF16)
      ->dequantize_row(args.buffer<const std::byte>(Operand::a) + t * row_bytes(DType::kF16, k), a, k);
  linear_rows({args.buffers[Operand::b], static_cast<DType>(args.symbols[kSymbols["dtype:b"]]), false, m, nullptr, a,
               DType::kF32, 0, k, 1, args.buffer<float>(Operand::c) + std::uint64_t{t} * m, m, scratch, args.set},
              args.wg[1] * kTile, std::min(m, (args.wg[1] + 1) * kTile));
}

}  // namespace

extern const CpuKernel kCpuKernel_matmul_wmma_f16;
const CpuKernel kCpuKernel_matmul_wmma_f16{
    "MATMUL_WMMA_F16", run, kSymbols, {{"n"}, {"m", kTile}}, KeyTypes::kF16AndBF16, [](const std::uint32_t* s) {
      return std::uint64_t{s[kSymbols["dim:k"]]} * 8;
    }};

}  // namespace zinc_rt::cpu
